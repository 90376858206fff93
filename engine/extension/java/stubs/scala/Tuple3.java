package scala;

public abstract class Tuple3<A, B, C> implements Product {}
