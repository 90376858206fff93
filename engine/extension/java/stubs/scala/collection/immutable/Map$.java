package scala.collection.immutable;

public final class Map$ {
  public static final Map$ MODULE$ = null;

  public <K, V> Map<K, V> empty() {
    throw new Error();
  }
}
