package skimql.sketch;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.Map;

/** The exact join of maps over a tree: every sketch sends weights by key along its one edge towards the first. */
final class ExactJoin {
  private final Sketch[] sketches;
  private final JoinTree tree;
  private final boolean doubles;

  private ExactJoin(Sketch[] sketches, JoinTree tree, boolean doubles) {
    this.sketches = sketches;
    this.tree = tree;
    this.doubles = doubles;
  }

  /** The join where all are maps, 0 where one of them is empty; null elsewhere. */
  static Number of(Sketch[] sketches, JoinTree tree) {
    boolean all = true;
    boolean doubles = false;
    for (Sketch sketch : sketches) {
      if (sketch.map != null && sketch.map.size() == 0) {
        return 0L;
      }
      all &= sketch.map != null;
      doubles |= sketch.spec.doubles;
    }
    return all ? new ExactJoin(sketches, tree, doubles).total() : null;
  }

  private Number total() {
    return message(0, null).values().stream().reduce(doubles ? (Number) 0.0 : BigInteger.ZERO, this::sum);
  }

  /** The summed weight of every key of the edge; of no edge all under one key. */
  private Map<Long, Number> message(int vertex, JoinTree.Edge towards) {
    int attributes = sketches[vertex].spec.attributes();
    @SuppressWarnings("unchecked")
    Map<Long, Number>[] received = new Map[attributes];
    int mine = -1;
    for (JoinTree.Edge edge : tree.edges) {
      boolean isLeft = edge.left == vertex;
      if (edge == towards) {
        mine = isLeft ? edge.leftAttribute : edge.rightAttribute;
      } else if (isLeft || edge.right == vertex) {
        received[isLeft ? edge.leftAttribute : edge.rightAttribute] = message(isLeft ? edge.right : edge.left, edge);
      }
    }
    int out = mine;
    boolean ownDoubles = sketches[vertex].spec.doubles;
    Map<Long, Number> sums = new HashMap<>();
    sketches[vertex].map.forEach(
        (key, weight) -> {
          Number product = number(weight, ownDoubles);
          for (int i = 0; i < received.length && product != null; i++) {
            if (received[i] != null) {
              Number other = received[i].get(key[i]);
              product = other == null ? null : product(product, other);
            }
          }
          if (product != null) {
            sums.merge(out < 0 ? 0L : key[out], product, this::sum);
          }
        });
    return sums;
  }

  private Number number(long weight, boolean isDouble) {
    if (doubles) {
      return isDouble ? Double.longBitsToDouble(weight) : (double) weight;
    }
    return BigInteger.valueOf(weight);
  }

  private Number sum(Number a, Number b) {
    return doubles ? (Number) (a.doubleValue() + b.doubleValue()) : ((BigInteger) a).add((BigInteger) b);
  }

  private Number product(Number a, Number b) {
    return doubles ? (Number) (a.doubleValue() * b.doubleValue()) : ((BigInteger) a).multiply((BigInteger) b);
  }
}
