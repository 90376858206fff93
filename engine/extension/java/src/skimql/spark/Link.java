package skimql.spark;

import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.Future;
import java.util.function.BiFunction;

/** The Python process that reads and answers our statements. Texts reach it as data. */
public final class Link {
  private static final int MOST_REQUESTS = 4096;
  private static final long ALIVE_SECONDS = 10;
  // Between reading a statement and answering it: who has just spoken is not asked whether he lives. A child is: it can
  // die while this JVM lives on, and another takes its place only as long as it has been asked nothing.
  private static final long JUST_NOW_NANOS = 20_000_000;
  private static final ObjectMapper JSON = new ObjectMapper();

  private static volatile BiFunction<String, Object, Object> handler;
  private static volatile boolean open;
  private static volatile boolean closed;
  // Named in Spark's configuration: there may be no Python that could call `open`.
  private static volatile boolean configured;
  private static ThreadPoolExecutor asking;
  private static volatile BiFunction<String, Object, Object> heard;
  private static volatile long heardAt;

  private static long last;
  private static final Map<Long, String> REQUESTS =
      new LinkedHashMap<Long, String>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, String> eldest) {
          return size() > MOST_REQUESTS;
        }
      };

  private Link() {}

  // Read at once, and all classes loaded: Hive closes the class loaders of a connection that ends, and those above them.
  private static final String VERSION = read("version.txt").next();

  static {
    for (Scanner names = read("classes.txt"); names.hasNext(); ) {
      try {
        Class.forName(names.next());
      } catch (ClassNotFoundException | LinkageError missing) {
        // Whoever needs it says so.
      }
    }
  }

  private static Scanner read(String name) {
    return new Scanner(Link.class.getResourceAsStream(name), "UTF-8");
  }

  /** What tells this jar from one of other sources. */
  public static String version() {
    return VERSION;
  }

  /** Statements go to this handler from now on; null: to the one that is known, where there is one. */
  public static synchronized boolean open(BiFunction<String, Object, Object> python) {
    handler = python == null ? handler : python;
    open = handler != null;
    closed = !open && closed;
    if (open) {
      Bridge.stop();
    }
    return open;
  }

  /** Our statements are answered by a Python that is started for them, until one calls `open`. */
  static synchronized void configured() {
    configured = true;
    closed = false;
  }

  /** Our statements are nobody's. The thread that asks stays: each new one would be a new connection to Python. */
  public static synchronized void close() {
    open = false;
    closed = true;
    Bridge.stop();
    Resent.clear();
    synchronized (REQUESTS) {
      REQUESTS.clear();
    }
  }

  /** Whether somebody reads our statements, or can be started to. */
  static boolean isOpen() {
    return open || configured && !closed;
  }

  /** Whether somebody reads them now. */
  static boolean isRunning() {
    return open || Bridge.isRunning();
  }

  private static BiFunction<String, Object, Object> python(SparkSession session) throws Exception {
    if (open) {
      return handler;
    }
    if (!isOpen()) {
      throw Faults.notOpen();
    }
    return Bridge.handler(session);
  }

  /** Whether a text may be ours: not after the extension was switched off. */
  static boolean isLoaded() {
    return !closed;
  }

  /** The text that Spark is to read in place of this one; null where nothing in it is ours. */
  static String read(String text, SparkSession session) {
    try {
      return asked(text, session);
    } catch (Throwable fault) {
      throw Faults.thrown(Faults.met(fault, session));
    }
  }

  private static String asked(String text, SparkSession session) throws Exception {
    Map<String, Object> asked = new LinkedHashMap<>();
    asked.put("op", "read");
    asked.put("text", text);
    asked.put("first", reserve());
    Map<?, ?> told = JSON.readValue((String) call(asked, session), Map.class);
    if (told.get("error") != null) {
      throw Faults.ofText((Map<?, ?>) told.get("error"));
    }
    Map<?, ?> requests = (Map<?, ?>) told.get("requests");
    if (requests != null) {
      synchronized (REQUESTS) {
        for (Map.Entry<?, ?> entry : requests.entrySet()) {
          REQUESTS.put(Long.valueOf((String) entry.getKey()), JSON.writeValueAsString(entry.getValue()));
        }
      }
    }
    return (String) told.get("text");
  }

  private static long reserve() {
    synchronized (REQUESTS) {
      last += 64;
      return last;
    }
  }

  /** What a part of a text, read before, asks for; null where that is too long ago. */
  static Map<String, Object> request(long number) throws Exception {
    String kept;
    synchronized (REQUESTS) {
      kept = REQUESTS.get(number);
    }
    if (kept == null) {
      return null;
    }
    @SuppressWarnings("unchecked")
    Map<String, Object> request = JSON.readValue(kept, Map.class);
    return request;
  }

  /** The answer, as a DataFrame of the session. */
  static Dataset<?> answer(Map<String, Object> request, SparkSession session) throws Exception {
    request.put("op", "answer");
    request.put("settings", settings(session.sessionState().conf()));
    Object told = call(request, session);
    if (!(told instanceof String)) {
      return (Dataset<?>) told;
    }
    Map<?, ?> found = JSON.readValue((String) told, Map.class);
    if (found.get("error") != null) {
      throw Faults.of((Map<?, ?>) found.get("error"));
    }
    return Rows.of(found, session);
  }

  /** What somebody has set, ANSI mode and the time zone whoever did, as Scala writes a map: Python need not ask. */
  private static String settings(SQLConf conf) {
    return conf.getAllConfs().mkString("\0")
        + "\0spark.sql.ansi.enabled -> "
        + conf.ansiEnabled()
        + "\0spark.sql.session.timeZone -> "
        + conf.sessionLocalTimeZone();
  }

  private static Object call(Map<String, Object> asked, SparkSession session) throws Exception {
    asked.put("session", session.sessionUUID());
    BiFunction<String, Object, Object> python = python(session);
    try {
      requireAlive(python);
    } catch (Exception fault) {
      if (open) {
        throw fault;
      }
      // Nothing has been asked yet: a new one may answer.
      Bridge.stop(python);
      python = python(session);
    }
    try {
      Object told = python.apply(JSON.writeValueAsString(asked), session);
      if (told == null) {
        throw Faults.gone("it gave no answer");
      }
      heard = python;
      heardAt = System.nanoTime();
      return told;
    } catch (RuntimeException fault) {
      if (!open) {
        Bridge.stop(python);
      }
      throw Faults.gone(lastLine(fault));
    }
  }

  /** A Python that has ended, or does not listen any more, is told within seconds; the call itself may take hours. */
  private static void requireAlive(BiFunction<String, Object, Object> python) throws Exception {
    if (open && python == heard && System.nanoTime() - heardAt < JUST_NOW_NANOS) {
      return;
    }
    Future<Object> asked = asking().submit(() -> python.apply("{\"op\": \"ping\"}", null));
    try {
      asked.get(ALIVE_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException | ExecutionException fault) {
      asked.cancel(true);
      synchronized (Link.class) {
        if (asking != null) {
          asking.shutdownNow();
          asking = null;
        }
      }
      Throwable cause = fault instanceof ExecutionException ? fault.getCause() : fault;
      throw Faults.gone(cause instanceof TimeoutException ? "it does not answer" : lastLine(cause));
    }
  }

  /** The end of a traceback says what it is about. */
  private static String lastLine(Throwable fault) {
    String[] lines = String.valueOf(fault.getMessage()).trim().split("\n");
    return lines[lines.length - 1].trim();
  }

  private static synchronized ThreadPoolExecutor asking() {
    if (asking == null) {
      asking =
          new ThreadPoolExecutor(
              1,
              1,
              0,
              TimeUnit.SECONDS,
              new LinkedBlockingQueue<>(),
              work -> {
                Thread thread = new Thread(work, "skimql-alive");
                thread.setDaemon(true);
                return thread;
              });
    }
    return asking;
  }
}
