package scala;

public abstract class Tuple4<A, B, C, D> implements Product {}
