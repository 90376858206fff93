package scala.collection.immutable;

public abstract class Nil$ extends List<Object> {
  public static final Nil$ MODULE$ = null;
}
