package skimql.sketch;

import com.fasterxml.jackson.databind.ObjectMapper;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A sketch as bytes, those of `sketches.stored_form` in Python: magic, head as JSON, arrays, SHA-256. */
public final class Stored {
  private static final byte[] MAGIC = "SkimQL sketch 1\n".getBytes(StandardCharsets.US_ASCII);
  private static final int CHECK = 32;
  private static final int MOST_COUNTERS = 1 << 27;
  private static final ObjectMapper JSON = new ObjectMapper();

  private Stored() {}

  public static byte[] toBytes(Sketch sketch) {
    return checked(pack(sketch));
  }

  public static byte[] toBytes(LevelSketch sketch) {
    return checked(pack(sketch));
  }

  private static byte[] checked(byte[] packed) {
    byte[] out = Arrays.copyOf(packed, packed.length + CHECK);
    System.arraycopy(digest(packed, packed.length), 0, out, packed.length, CHECK);
    return out;
  }

  /** A sketch for joins. */
  public static Sketch fromBytes(byte[] bytes) {
    Object found = read(bytes);
    if (!(found instanceof Sketch)) {
      throw SketchFault.pair("a sketch of distinct keys joins with none", "skim_sketch without kind = distinct");
    }
    return (Sketch) found;
  }

  /** A sketch of distinct keys. */
  public static LevelSketch distinctFromBytes(byte[] bytes) {
    Object found = read(bytes);
    if (!(found instanceof LevelSketch)) {
      throw SketchFault.pair(
          "a sketch for joins has not how many keys are distinct", "skim_sketch(k, 'kind = distinct')");
    }
    return (LevelSketch) found;
  }

  /** A sketch of either kind. */
  public static Object read(byte[] bytes) {
    int length = bytes.length - CHECK;
    if (length < MAGIC.length + 4 || !Arrays.equals(Arrays.copyOf(bytes, MAGIC.length), MAGIC)) {
      throw SketchFault.damaged("these bytes are no sketch of SkimQL, or of another version");
    }
    if (!Arrays.equals(digest(bytes, length), Arrays.copyOfRange(bytes, length, bytes.length))) {
      throw SketchFault.damaged("the bytes of the sketch are damaged or cut off: their SHA-256 is another");
    }
    return unpack(Arrays.copyOf(bytes, length));
  }

  /** All but the checksum. */
  static byte[] pack(Sketch sketch) {
    return pack(head(sketch), body(sketch));
  }

  static byte[] pack(LevelSketch sketch) {
    return pack(head(sketch), body(sketch));
  }

  private static byte[] pack(String text, long[] body) {
    byte[] head = text.getBytes(StandardCharsets.US_ASCII);
    ByteBuffer out =
        ByteBuffer.allocate(MAGIC.length + 4 + head.length + 8 * body.length).order(ByteOrder.LITTLE_ENDIAN);
    out.put(MAGIC).putInt(head.length).put(head);
    out.asLongBuffer().put(body);
    return out.array();
  }

  static Object unpack(byte[] bytes) {
    try {
      ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
      in.position(MAGIC.length);
      byte[] head = new byte[in.getInt()];
      in.get(head);
      long[] body = new long[in.remaining() / 8];
      in.asLongBuffer().get(body);
      return restored(JSON.readValue(new String(head, StandardCharsets.UTF_8), Map.class), body);
    } catch (java.io.IOException | RuntimeException fault) {
      if (fault instanceof SketchFault) {
        throw (SketchFault) fault;
      }
      throw SketchFault.damaged("the head describes no sketch (" + fault + ")");
    }
  }

  private static byte[] digest(byte[] bytes, int length) {
    try {
      MessageDigest sha = MessageDigest.getInstance("SHA-256");
      sha.update(bytes, 0, length);
      return sha.digest();
    } catch (NoSuchAlgorithmException fault) {
      throw new IllegalStateException(fault);
    }
  }

  private static long[] body(Sketch sketch) {
    if (sketch.map != null) {
      return sketch.map.columns();
    }
    if (sketch.counters != null) {
      return sketch.counters;
    }
    long[] out = new long[sketch.sums.length];
    for (int i = 0; i < out.length; i++) {
      out[i] = Double.doubleToRawLongBits(sketch.sums[i]);
    }
    return out;
  }

  private static long[] body(LevelSketch sketch) {
    if (sketch.map != null) {
      return sketch.map.columns();
    }
    long[] out = new long[3 * sketch.counts.length];
    System.arraycopy(sketch.counts, 0, out, 0, sketch.counts.length);
    System.arraycopy(sketch.keySums, 0, out, sketch.counts.length, sketch.counts.length);
    System.arraycopy(sketch.printSums, 0, out, 2 * sketch.counts.length, sketch.counts.length);
    return out;
  }

  private static String head(LevelSketch sketch) {
    LevelSpec spec = sketch.spec;
    StringBuilder out = new StringBuilder("{\"arrays\":[");
    if (sketch.map == null) {
      array(out, "counts", "int64", spec.cells());
      array(out.append(","), "key_sums", "uint64", 1, spec.cells());
      array(out.append(","), "print_sums", "uint64", spec.cells());
    } else {
      array(out, "keys", "int64", sketch.map.size(), 1);
      array(out.append(","), "weights", "int64", sketch.map.size());
    }
    out.append("],\"kind\":\"level\",\"limit_bytes\":").append(sketch.limit);
    meaning(out, sketch.meaning);
    out.append(",\"spec\":{\"buckets\":").append(spec.buckets).append(",\"family\":");
    family(out, spec.family);
    return out.append(",\"levels\":").append(spec.levels).append("},\"tuples\":null}").toString();
  }

  private static void meaning(StringBuilder out, Meaning meaning) {
    if (meaning != null) {
      out.append(",\"meaning\":{\"keys\":");
      texts(out, meaning.keys);
      out.append(",\"scale\":").append(meaning.scale);
      out.append(",\"weights\":\"").append(meaning.sums ? "sums" : "counts").append("\"}");
    }
  }

  private static String head(Sketch sketch) {
    Spec spec = sketch.spec;
    StringBuilder out = new StringBuilder("{\"arrays\":[");
    if (sketch.map == null) {
      array(out, "counters", spec.dtype(), spec.rows, spec.buckets);
    } else {
      array(out, "keys", "int64", sketch.map.size(), spec.attributes());
      array(out.append(","), "weights", spec.dtype(), sketch.map.size());
    }
    out.append("],\"kind\":\"convolution\",\"limit_bytes\":").append(sketch.limit);
    meaning(out, sketch.meaning);
    out.append(",\"spec\":{\"buckets\":").append(spec.buckets);
    out.append(",\"dtype\":\"").append(spec.dtype()).append("\",\"families\":[");
    for (int i = 0; i < spec.families.size(); i++) {
      family(out.append(i == 0 ? "" : ","), spec.families.get(i));
    }
    out.append("],\"rows\":").append(spec.rows).append("},\"tuples\":");
    return out.append(sketch.tuples < 0 ? "null" : Long.toString(sketch.tuples)).append("}").toString();
  }

  private static void array(StringBuilder out, String name, String dtype, int... shape) {
    out.append("[\"").append(name).append("\",\"").append(dtype).append("\",").append(Arrays.toString(shape).replace(" ", ""));
    out.append("]");
  }

  private static void family(StringBuilder out, Family family) {
    out.append("{\"name\":");
    text(out, family.name);
    out.append(",\"origin\":");
    if (family.first == null) {
      out.append("null");
    } else {
      texts(out.append("[").append(family.first).append(","), family.labels);
      out.append("]");
    }
    out.append(",\"parameters\":{");
    String between = "";
    for (Map.Entry<String, Long> entry : family.parameters.entrySet()) {
      text(out.append(between), entry.getKey());
      out.append(":").append(entry.getValue());
      between = ",";
    }
    out.append("},\"seed\":").append(family.seed).append("}");
  }

  private static void texts(StringBuilder out, List<String> texts) {
    out.append("[");
    for (int i = 0; i < texts.size(); i++) {
      text(out.append(i == 0 ? "" : ","), texts.get(i));
    }
    out.append("]");
  }

  /** As Python writes a text: everything but ASCII escaped. */
  private static void text(StringBuilder out, String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      int named = "\"\\\b\f\n\r\t".indexOf(c);
      if (named >= 0) {
        out.append('\\').append("\"\\bfnrt".charAt(named));
      } else if (c < 0x20 || c > 0x7E) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  private static Object restored(Map<?, ?> head, long[] body) {
    if ("level".equals(head.get("kind"))) {
      return restoredLevels(head, body);
    }
    if (!"convolution".equals(head.get("kind"))) {
      throw SketchFault.pair("a sketch of the kind " + head.get("kind") + " has no functions in SQL", null);
    }
    Map<?, ?> told = (Map<?, ?>) head.get("spec");
    List<Family> families = new ArrayList<>();
    for (Object family : (List<?>) told.get("families")) {
      families.add(family((Map<?, ?>) family));
    }
    int rows = integer(told.get("rows"));
    int buckets = integer(told.get("buckets"));
    require(!families.isEmpty() && rows > 0 && buckets > 1 && (long) rows * buckets <= MOST_COUNTERS, "its size");
    Spec spec = new Spec(families, rows, buckets, "float64".equals(told.get("dtype")));
    Long limit = head.get("limit_bytes") == null ? null : ((Number) head.get("limit_bytes")).longValue();
    List<?> arrays = (List<?>) head.get("arrays");
    boolean isMap = arrays.size() == 2;
    Sketch sketch = new Sketch();
    sketch.spec = spec;
    sketch.meaning = meaning((Map<?, ?>) head.get("meaning"), families.size());
    if (isMap) {
      require(limit != null && body.length % (families.size() + 1) == 0, "its map");
      sketch.map = new KeyMap(families.size(), spec.doubles);
      fill(sketch, body, body.length / (families.size() + 1));
    } else {
      require(body.length == rows * buckets, "its counters");
      sketch.restore(body);
    }
    sketch.limit = limit;
    sketch.tuples = head.get("tuples") == null ? -1 : ((Number) head.get("tuples")).longValue();
    return sketch;
  }

  private static LevelSketch restoredLevels(Map<?, ?> head, long[] body) {
    Map<?, ?> told = (Map<?, ?>) head.get("spec");
    int buckets = integer(told.get("buckets"));
    int levels = integer(told.get("levels"));
    require(buckets >= 16 && levels >= 2 && levels <= 33 && (long) buckets * levels <= MOST_COUNTERS, "its size");
    LevelSpec spec = new LevelSpec(family((Map<?, ?>) told.get("family")), buckets, levels);
    LevelSketch sketch = new LevelSketch(spec, meaning((Map<?, ?>) head.get("meaning"), 1));
    if (((List<?>) head.get("arrays")).size() == 2) {
      require(head.get("limit_bytes") != null && body.length % 2 == 0, "its map");
      for (int i = 0; i < body.length / 2; i++) {
        sketch.map.add(new long[] {body[i]}, body[body.length / 2 + i]);
      }
      require(sketch.map.size() == body.length / 2, "its map");
    } else {
      require(body.length == 3 * spec.cells(), "its cells");
      sketch.map = null;
      sketch.counts = Arrays.copyOfRange(body, 0, spec.cells());
      sketch.keySums = Arrays.copyOfRange(body, spec.cells(), 2 * spec.cells());
      sketch.printSums = Arrays.copyOfRange(body, 2 * spec.cells(), 3 * spec.cells());
    }
    if (head.get("limit_bytes") != null) {
      sketch.limit = ((Number) head.get("limit_bytes")).longValue();
    }
    return sketch;
  }

  private static void fill(Sketch sketch, long[] body, int entries) {
    int attributes = sketch.spec.attributes();
    long[] key = new long[attributes];
    for (int i = 0; i < entries; i++) {
      System.arraycopy(body, i * attributes, key, 0, attributes);
      long weight = body[entries * attributes + i];
      if (sketch.spec.doubles) {
        sketch.map.add(key, Double.longBitsToDouble(weight));
      } else {
        sketch.map.add(key, weight);
      }
    }
    require(sketch.map.size() == entries, "its map");
  }

  private static Family family(Map<?, ?> told) {
    Map<String, Long> parameters = new TreeMap<>();
    for (Map.Entry<?, ?> entry : ((Map<?, ?>) told.get("parameters")).entrySet()) {
      parameters.put((String) entry.getKey(), ((Number) entry.getValue()).longValue());
    }
    List<?> origin = (List<?>) told.get("origin");
    List<String> labels = new ArrayList<>();
    if (origin != null) {
      ((List<?>) origin.get(1)).forEach(label -> labels.add((String) label));
    }
    Long first = origin == null ? null : Long.valueOf(((Number) origin.get(0)).longValue());
    String name = (String) told.get("name");
    require(!name.equals(Folded.NAME) || parameters.containsKey("fine_bits"), "its hash family");
    return new Family(name, ((Number) told.get("seed")).longValue(), parameters, first, labels);
  }

  private static Meaning meaning(Map<?, ?> told, int attributes) {
    if (told == null) {
      return null;
    }
    List<String> keys = new ArrayList<>();
    ((List<?>) told.get("keys")).forEach(key -> keys.add((String) key));
    long scale = ((Number) told.get("scale")).longValue();
    require(keys.size() == attributes && scale > 0, "its meaning");
    return new Meaning(keys, scale, "sums".equals(told.get("weights")));
  }

  private static int integer(Object told) {
    long value = ((Number) told).longValue();
    require(value == (int) value, "a size");
    return (int) value;
  }

  private static void require(boolean holds, String what) {
    if (!holds) {
      throw SketchFault.damaged("the head and the bytes of the sketch do not agree on " + what);
    }
  }
}
