package skimql.sketch;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Which attributes of sketches are joined: those of one hash family, which two sketches have. */
final class JoinTree {
  /** Sketch and attribute of either end. */
  static final class Edge {
    final int left;
    final int leftAttribute;
    final int right;
    final int rightAttribute;

    Edge(int[] left, int[] right) {
      this.left = left[0];
      leftAttribute = left[1];
      this.right = right[0];
      rightAttribute = right[1];
    }
  }

  final List<Edge> edges = new ArrayList<>();
  /** Of every sketch, whether an even number of edges lies between it and the first. */
  final boolean[] white;

  JoinTree(Sketch[] sketches) {
    sameSizes(sketches);
    Map<Family, List<int[]>> ends = new LinkedHashMap<>();
    for (int v = 0; v < sketches.length; v++) {
      List<Family> families = sketches[v].spec.families;
      for (int i = 0; i < families.size(); i++) {
        ends.computeIfAbsent(families.get(i), unknown -> new ArrayList<>()).add(new int[] {v, i});
      }
    }
    ends.forEach((family, found) -> edges.add(edge(sketches, family, found)));
    white = colours(sketches);
  }

  private static void sameSizes(Sketch[] sketches) {
    Spec first = sketches[0].spec;
    for (Sketch other : sketches) {
      if (other.spec.rows != first.rows || other.spec.buckets != first.buckets) {
        throw SketchFault.pair(
            "sketches of different sizes cannot be joined: " + first + " and " + other.spec, "the same rows and buckets for both");
      }
    }
  }

  private static Edge edge(Sketch[] sketches, Family family, List<int[]> ends) {
    if (ends.size() == 1) {
      int alone = ends.get(0)[0];
      throw SketchFault.pair(
          "sketches of different hash families cannot be joined: "
              + sketches[alone].spec
              + " and "
              + sketches[alone == 0 ? 1 : 0].spec,
          "the same family, seed, key and size for both ends of a join");
    }
    if (ends.size() > 2) {
      throw SketchFault.pair(
          ends.size() + " sketches are hashed by " + family + ": which of them are joined is not known",
          "two keys for the sketch in the middle, skim_sketch(struct(a, b))");
    }
    String[] types = new String[2];
    for (int end = 0; end < 2; end++) {
      Meaning meaning = sketches[ends.get(end)[0]].meaning;
      types[end] = meaning == null ? null : meaning.keys.get(ends.get(end)[1]);
    }
    if (types[0] != null && types[1] != null && !types[0].equals(types[1])) {
      throw SketchFault.pair(
          "keys of different types cannot be joined: " + types[0] + " and " + types[1], "CAST one of the keys to the type of the other");
    }
    return new Edge(ends.get(0), ends.get(1));
  }

  private boolean[] colours(Sketch[] sketches) {
    boolean[] colour = new boolean[sketches.length];
    boolean[] known = new boolean[sketches.length];
    known[0] = true;
    colour[0] = true;
    int reached = 1;
    for (int pass = 1; pass < sketches.length; pass++) {
      for (Edge edge : edges) {
        if (known[edge.left] != known[edge.right]) {
          int next = known[edge.left] ? edge.right : edge.left;
          colour[next] = !colour[edge.left + edge.right - next];
          known[next] = true;
          reached++;
        }
      }
    }
    if (reached < sketches.length || edges.size() != sketches.length - 1) {
      throw SketchFault.pair(
          edges.size() + " joins between " + sketches.length + " sketches are no tree",
          "every key in two sketches, and no two sketches joined by two keys");
    }
    return colour;
  }
}
