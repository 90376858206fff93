package org.apache.spark.sql;

import scala.Tuple2;
import scala.Tuple3;
import scala.Tuple4;
import scala.Tuple5;

public class Encoders {
  public static Encoder<Long> LONG() {
    throw new Error();
  }

  public static Encoder<Double> DOUBLE() {
    throw new Error();
  }

  public static Encoder<byte[]> BINARY() {
    throw new Error();
  }

  public static <T> Encoder<T> javaSerialization(Class<T> type) {
    throw new Error();
  }

  public static <A, B> Encoder<Tuple2<A, B>> tuple(Encoder<A> a, Encoder<B> b) {
    throw new Error();
  }

  public static <A, B, C> Encoder<Tuple3<A, B, C>> tuple(Encoder<A> a, Encoder<B> b, Encoder<C> c) {
    throw new Error();
  }

  public static <A, B, C, D> Encoder<Tuple4<A, B, C, D>> tuple(
      Encoder<A> a, Encoder<B> b, Encoder<C> c, Encoder<D> d) {
    throw new Error();
  }

  public static <A, B, C, D, E> Encoder<Tuple5<A, B, C, D, E>> tuple(
      Encoder<A> a, Encoder<B> b, Encoder<C> c, Encoder<D> d, Encoder<E> e) {
    throw new Error();
  }
}
