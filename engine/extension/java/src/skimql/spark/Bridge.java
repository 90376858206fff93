package skimql.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.classic.SparkSession;
import py4j.ClientServer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Writer;
import java.io.OutputStreamWriter;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiFunction;

/**
 * The Python that answers where none drives Spark, as in spark-sql, a Thrift server or a Connect server: a child that is
 * started for the first statement of ours, and ends with this JVM or its Spark. It reaches the JVM over loopback, by a
 * token that it is told on its input.
 */
public final class Bridge {
  private static final String MODULE = "skimql.engine.extension.bridge";
  private static final long START_SECONDS = 120;
  private static final ObjectMapper JSON = new ObjectMapper();
  private static Bridge running;

  private final SparkSession session;
  private final SparkContext context;
  private final Set<Integer> jobs = ConcurrentHashMap.newKeySet();
  private Process process;
  private ClientServer server;
  private volatile BiFunction<String, Object, Object> handler;
  private volatile boolean ready;
  private volatile String lastWords = "";

  private Bridge(SparkSession session) {
    this.session = session;
    this.context = session.sparkContext();
  }

  /** The handler in the child, which is started where none runs for this Spark. */
  static synchronized BiFunction<String, Object, Object> handler(SparkSession session) throws Exception {
    if (running != null && (!running.process.isAlive() || running.context != session.sparkContext())) {
      stop();
    }
    if (running == null) {
      Bridge bridge = new Bridge(session);
      try {
        bridge.start();
      } catch (Exception | Error fault) {
        bridge.end();
        throw fault;
      }
      running = bridge;
    }
    return running.handler;
  }

  static synchronized boolean isRunning() {
    return running != null && running.process.isAlive();
  }

  /** End the child. */
  static synchronized void stop() {
    if (running != null) {
      running.end();
      running = null;
    }
  }

  /** End the child that has this handler. */
  static synchronized void stop(BiFunction<String, Object, Object> python) {
    if (running != null && running.handler == python) {
      stop();
    }
  }

  /** For the child: the session that asked first. */
  public Object session() {
    return session;
  }

  /** For the child: its Spark. */
  public Object context() {
    return context;
  }

  /** For the child: what answers. */
  public void opened(BiFunction<String, Object, Object> python) {
    handler = python;
  }

  private void start() throws Exception {
    String command = command();
    FutureTask<Map<?, ?>> told = new FutureTask<>(() -> told(command));
    // Threads that come from a daemon are daemons, and find classes as it does.
    Thread starting = daemon(told, "skimql-bridge");
    starting.setContextClassLoader(Bridge.class.getClassLoader());
    starting.start();
    Map<?, ?> found;
    try {
      found = told.get(START_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException late) {
      throw Faults.noPython(command, "it has not started within " + START_SECONDS + " s");
    } catch (ExecutionException fault) {
      throw Faults.noPython(command, String.valueOf(fault.getCause().getMessage()));
    }
    if (found == null || handler == null) {
      Object why = found == null ? null : found.get("error");
      process.waitFor(1, TimeUnit.SECONDS);
      throw Faults.noPython(command, why == null ? "it ended: " + lastWords : String.valueOf(why));
    }
    ready = true;
    context.addSparkListener(
        new SparkListener() {
          @Override
          public void onApplicationEnd(SparkListenerApplicationEnd end) {
            stopped(Bridge.this);
          }

          @Override
          public void onJobStart(SparkListenerJobStart start) {
            Object tags = start.properties() == null ? null : start.properties().get("spark.job.tags");
            if (String.valueOf(tags).contains("skimql-")) {
              jobs.add(start.jobId());
            }
          }

          @Override
          public void onJobEnd(SparkListenerJobEnd end) {
            jobs.remove(end.jobId());
          }
        });
  }

  private static synchronized void stopped(Bridge bridge) {
    if (running == bridge) {
      stop();
    }
  }

  /** What the child says when it has started; null where it says nothing and ends. */
  private Map<?, ?> told(String command) throws IOException {
    byte[] random = new byte[32];
    new SecureRandom().nextBytes(random);
    StringBuilder token = new StringBuilder();
    for (byte b : random) {
      token.append(String.format("%02x", b));
    }
    server =
        new ClientServer.ClientServerBuilder()
            .entryPoint(this)
            .javaAddress(InetAddress.getLoopbackAddress())
            .javaPort(0)
            .authToken(token.toString())
            .build();
    process = new ProcessBuilder(command, "-m", MODULE).start();
    daemon(this::passOn, "skimql-bridge-words").start();
    Map<String, Object> asked = new LinkedHashMap<>();
    asked.put("port", server.getJavaServer().getListeningPort());
    asked.put("token", token.toString());
    asked.put("version", Link.version());
    // It stays open: the child ends when it is closed.
    Writer input = new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8);
    try {
      input.write(JSON.writeValueAsString(asked) + "\n");
      input.flush();
    } catch (IOException closed) {
      return null;
    }
    String line = lines(process.getInputStream()).readLine();
    return line == null ? null : JSON.readValue(line, Map.class);
  }

  /** What the child writes is for whoever reads what this JVM writes; before it serves, for its error. */
  private void passOn() {
    try (BufferedReader words = lines(process.getErrorStream())) {
      for (String line = words.readLine(); line != null; line = words.readLine()) {
        if (ready) {
          System.err.println(line);
        } else if (!line.trim().isEmpty()) {
          lastWords = line.trim();
        }
      }
    } catch (IOException closed) {
      // Of a child that was ended.
    }
  }

  private String command() {
    String named = context.getConf().get("spark.skimql.python", "");
    if (!named.isEmpty()) {
      return named;
    }
    for (String variable : new String[] {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"}) {
      String value = System.getenv(variable);
      // It may be jupyter or ipython.
      if (value != null && Paths.get(value).getFileName().toString().startsWith("py")) {
        return value;
      }
    }
    return "python3";
  }

  private void end() {
    if (process != null) {
      process.destroyForcibly();
    }
    if (server != null) {
      server.shutdown();
    }
    // What it ran is for nobody any more.
    jobs.forEach(context::cancelJob);
  }

  private static BufferedReader lines(InputStream stream) {
    return new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
  }

  private static Thread daemon(Runnable work, String name) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }
}
