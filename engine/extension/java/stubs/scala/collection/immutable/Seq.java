package scala.collection.immutable;

public interface Seq<A> {
  A apply(int place);

  int length();
}
