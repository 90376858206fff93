package scala.collection.immutable;

public interface Map<K, V> {
  String mkString(String between);
}
