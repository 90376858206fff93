package scala.collection.immutable;

public abstract class List<A> implements Seq<A> {
  public <B> List<B> $colon$colon(B first) {
    throw new Error();
  }
}
