package scala;

public abstract class Tuple5<A, B, C, D, E> implements Product {}
