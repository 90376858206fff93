package scala.collection.immutable;

public interface Map<K, V> {}
