package scala;

public abstract class Option<A> {
  public static <A> Option<A> apply(A value) {
    throw new Error();
  }

  public boolean isDefined() {
    throw new Error();
  }
}
