package scala;

public interface Function1<A, R> {
  R apply(A a);
}
