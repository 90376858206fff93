package scala;

public abstract class Tuple2<A, B> implements Product {}
