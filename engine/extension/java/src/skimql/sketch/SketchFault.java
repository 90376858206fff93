package skimql.sketch;

/** Refused, with one of SkimQL's codes. */
public final class SketchFault extends RuntimeException {
  public static final String[] CODES = {"SKIMQL_SKETCH_PAIR", "SKIMQL_NO_SKETCH", "SKIMQL_OVERFLOW", "SKIMQL_NOT_FINITE"};

  private static final long serialVersionUID = 1;

  private final String code;
  private final String told;

  public SketchFault(String code, String message, String hint) {
    super("[" + code + "] " + said(message, hint));
    this.code = code;
    told = said(message, hint);
  }

  private static String said(String message, String hint) {
    return message + (hint == null ? "" : "\n  try: " + hint);
  }

  public String code() {
    return code;
  }

  /** The message without the code. */
  public String told() {
    return told;
  }

  static SketchFault pair(String message, String hint) {
    return new SketchFault("SKIMQL_SKETCH_PAIR", message, hint);
  }

  static SketchFault damaged(String message) {
    return new SketchFault("SKIMQL_NO_SKETCH", message, "a column that skim_sketch or skim_merge has made");
  }

  static SketchFault overflow(String what) {
    return new SketchFault(
        "SKIMQL_OVERFLOW",
        "adding " + what + " takes a counter of a sketch beyond 64 bits",
        "CAST(weight AS DOUBLE), or smaller units");
  }
}
