package skimql.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.immutable.Seq;

import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What the analysed plan of a DataFrame tells of where its tuples come from, in one answer: the twin of
 * {@code plan_facts.py}, which asks the same node by node. Methods are called by name, as py4j does.
 */
public final class SourceFacts {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String RELATION = "LogicalRelation";
  private static final String OF_FILES = "HadoopFsRelation";

  private static final int MOST_VIEWS = 1024;

  private static long last;
  private static final Map<String, Seen> SEEN =
      new LinkedHashMap<String, Seen>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Seen> eldest) {
          return size() > MOST_VIEWS;
        }
      };

  /** A view when it was looked at last, by which settings, and the number that stands for both. */
  private static final class Seen {
    final WeakReference<Object> view;
    final Object settings;
    final long number;

    Seen(Object view, Object settings, long number) {
      this.view = new WeakReference<>(view);
      this.settings = settings;
      this.number = number;
    }
  }

  /** One is made once: py4j calls methods of an object without looking for its class in every jar. */
  public SourceFacts() {}

  /**
   * What stands for a temporary view of a DataFrame of files as it is now: another text where the view was made anew,
   * its list of files or a setting is another, or names are looked up elsewhere. Empty where there is none, or where something else
   * may have changed: views of texts, other sources, Spark's cache.
   */
  public String view(SparkSession session, String name) throws Exception {
    Object view = orNull(call(session.sessionState(), "catalog"), "getRawTempView", name);
    Object plan = view == null ? null : orNull(view, "plan");
    if (plan == null || isCached((LogicalPlan) plan, session)) {
      return "";
    }
    int files = 1;
    for (Object node : items(call(plan, "collectLeaves"))) {
      Object relation = name(node).equals(RELATION) ? call(node, "relation") : null;
      if (relation == null || !name(relation).equals(OF_FILES)) {
        return "";
      }
      files = 31 * files + Arrays.hashCode((Object[]) call(call(relation, "location"), "inputFiles"));
    }
    Object settings = session.sessionState().conf().getAllConfs();
    return number(session.sessionUUID() + " " + name, view, settings) + " " + files + " " + path(session);
  }

  /** Whether some of it is in Spark's cache, which may be of files as they were. */
  private static boolean isCached(LogicalPlan plan, SparkSession session) throws Exception {
    if ((Boolean) call(call(call(session, "sharedState"), "cacheManager"), "isEmpty")) {
      return false;
    }
    SessionState state = session.sessionState();
    return isCached(state.executePlan(plan, state.executePlan$default$2()));
  }

  private static boolean isCached(Object execution) throws Exception {
    return hasLeaf(call(execution, "withCachedData"), "InMemoryRelation");
  }

  private static boolean hasLeaf(Object plan, String name) throws Exception {
    for (Object node : items(call(plan, "collectLeaves"))) {
      if (name(node).equals(name)) {
        return true;
      }
    }
    return false;
  }

  private static long number(String key, Object view, Object settings) {
    synchronized (SEEN) {
      Seen seen = SEEN.get(key);
      if (seen == null || seen.view.get() != view || !seen.settings.equals(settings)) {
        seen = new Seen(view, settings, ++last);
        SEEN.put(key, seen);
      }
      return seen.number;
    }
  }

  /** Where this Spark looks names up; older ones have one way alone. */
  private static String path(SparkSession session) throws Exception {
    try {
      return (String) call(call(session.sessionState(), "catalogManager"), "currentPathString");
    } catch (NoSuchMethodException older) {
      return "";
    }
  }

  /** The facts as a JSON object. */
  public String of(Dataset<?> frame) throws Exception {
    Object execution = frame.queryExecution();
    Object plan = call(execution, "analyzed");
    List<Object> chain = chain(plan);
    Object end = chain.get(chain.size() - 1);
    boolean isRelation = name(end).equals(RELATION);
    List<Object> found = isRelation ? Arrays.asList(end) : items(call(plan, "collectLeaves"));
    List<Map<String, Object>> leaves = new ArrayList<>();
    for (Object node : found) {
      leaves.add(leaf(node));
    }
    for (Object query : items(call(plan, "subqueriesAll"))) {
      for (Object node : items(call(query, "collectLeaves"))) {
        leaves.add(leaf(node));
      }
    }
    List<String> names = new ArrayList<>();
    boolean settled = true;
    for (Object node : chain) {
      names.add(name(node));
      settled &= !name(node).equals("View") || (Boolean) call(node, "isTempViewStoringAnalyzedPlan");
    }
    Object canonical = call(plan, "canonicalized");
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("deterministic", call(plan, "deterministic"));
    facts.put("chain", names);
    facts.put("in_catalog", isRelation && (Boolean) call(call(end, "catalogTable"), "isDefined"));
    facts.put("settled", settled);
    facts.put("leaves", leaves);
    facts.put("cached", isCached(execution));
    facts.put("canonical", canonical.hashCode() + "\n" + canonical);
    return JSON.writeValueAsString(facts);
  }

  private static List<Object> chain(Object plan) throws Exception {
    List<Object> nodes = new ArrayList<>();
    for (Object node = plan; ; ) {
      nodes.add(node);
      List<Object> children = name(node).equals(RELATION) ? new ArrayList<>() : items(call(node, "children"));
      if (children.size() != 1) {
        return nodes;
      }
      node = children.get(0);
    }
  }

  private static Map<String, Object> leaf(Object node) throws Exception {
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("name", name(node));
    Object relation = name(node).equals(RELATION) ? call(node, "relation") : null;
    if (relation == null || !name(relation).equals(OF_FILES)) {
      told.put("node", call(node, "nodeName"));
      told.put("version", version(node));
      return told;
    }
    Object location = call(relation, "location");
    List<String> roots = new ArrayList<>();
    for (Object root : items(call(location, "rootPaths"))) {
      roots.add(root.toString());
    }
    told.put("files", call(location, "inputFiles"));
    told.put("roots", roots);
    told.put("format", call(relation, "fileFormat").toString());
    return told;
  }

  /** The version of a table, where its source tells one. */
  private static String version(Object leaf) {
    try {
      Object told = call(call(leaf, "table"), "version");
      return told == null ? null : told.toString();
    } catch (Exception none) {
      return null;
    }
  }

  private static String name(Object node) {
    return node.getClass().getSimpleName().replaceAll("\\$+$", "");
  }

  private static List<Object> items(Object sequence) {
    Seq<?> all = (Seq<?>) sequence;
    List<Object> found = new ArrayList<>();
    for (int i = 0; i < all.length(); i++) {
      found.add(all.apply(i));
    }
    return found;
  }

  private static Object orNull(Object on, String method, String... given) throws Exception {
    Object found = call(on, method, given);
    return (Boolean) call(found, "isDefined") ? call(found, "get") : null;
  }

  private static Object call(Object on, String method, String... given) throws Exception {
    Class<?>[] kinds = new Class<?>[given.length];
    Arrays.fill(kinds, String.class);
    try {
      return on.getClass().getMethod(method, kinds).invoke(on, (Object[]) given);
    } catch (InvocationTargetException fault) {
      if (fault.getCause() instanceof Exception) {
        throw (Exception) fault.getCause();
      }
      throw fault;
    }
  }
}
