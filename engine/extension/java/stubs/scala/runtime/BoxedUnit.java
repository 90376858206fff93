package scala.runtime;

public final class BoxedUnit {
  public static final BoxedUnit UNIT = null;
}
