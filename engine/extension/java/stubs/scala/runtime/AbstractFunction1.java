package scala.runtime;

public abstract class AbstractFunction1<A, R> implements scala.Function1<A, R> {}
