package scala.runtime;

public abstract class AbstractFunction2<A, B, R> implements scala.Function2<A, B, R> {}
