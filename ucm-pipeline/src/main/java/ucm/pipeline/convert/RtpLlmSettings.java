package ucm.pipeline.convert;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.StoreConfig;
import ucm.pipeline.convert.ShellWords.Word;

/**
 * Arguments ({@code --enable_3fs True}) and environment ({@code ENABLE_3FS=1}) of RTP-LLM; an argument of a name
 * comes before the variable. Directory, sizes and what the container needs are those of RTP-LLM's documentation of 3FS.
 */
final class RtpLlmSettings {

  private static final long GIB = 1L << 30;
  private static final double DEFAULT_CACHE_GIB = 8;

  private static final ConfigKey<Boolean> REUSE = ConfigKey.flag("reuse_cache").defaultTo(false);
  private static final ConfigKey<Boolean> ENABLE = ConfigKey.flag("enable_3fs").defaultTo(false);
  private static final ConfigKey<Integer> TP =
      ConfigKey.integer("tp_size").range(1, 1024).defaultTo(1);
  private static final ConfigKey<Long> READ_IOV = iov("threefs_read_iov_size");
  private static final ConfigKey<Long> WRITE_IOV = iov("threefs_write_iov_size");
  private static final ConfigKey<Integer> READ_TIMEOUT = timeout("threefs_read_timeout_ms", 1000);
  private static final ConfigKey<Integer> WRITE_TIMEOUT = timeout("threefs_write_timeout_ms", 2000);
  private static final ConfigKey<Long> MEMORY_MB =
      ConfigKey.longInteger("memory_block_cache_size_mb").range(0, 1L << 30).defaultTo(0L);
  private static final List<ConfigKey<?>> KEYS =
      List.of(REUSE, ENABLE, TP, READ_IOV, WRITE_IOV, READ_TIMEOUT, WRITE_TIMEOUT, MEMORY_MB);

  private static final String VOLUMES = "json_volumes";
  private static final Set<String> OF_CONTAINER = Set.of(VOLUMES, "json_volume_mounts", "ulimits");
  private static final Pattern VARIABLE =
      Pattern.compile("([A-Za-z_][A-Za-z0-9_]*)=(.*)", Pattern.DOTALL);
  private static final Pattern SIZE_LIMIT =
      Pattern.compile("\"sizeLimit\"\\s*:\\s*\"(\\d{1,9})Gi\"");

  private record Given(String shown, String value, ConfigOrigin at, boolean isArgument) {}

  private final Ds3fsDraft draft;
  private final Map<String, Given> given = new LinkedHashMap<>();
  private final ConfigOrigin root;

  RtpLlmSettings(String source, List<Word> words, Ds3fsDraft draft) {
    this.draft = draft;
    this.root = ConfigOrigin.of(source);
    for (int i = 0; i < words.size(); i++) {
      Word word = words.get(i);
      Matcher variable = VARIABLE.matcher(word.text());
      if (word.text().startsWith("--")) {
        String[] parts = word.text().split("=", 2);
        boolean hasNext = i + 1 < words.size() && isValue(words.get(i + 1).text());
        String next = parts.length == 1 && hasNext ? words.get(++i).text() : "";
        add(parts[0], parts.length == 2 ? parts[1] : next, word.at());
      } else if (variable.matches()) {
        add(variable.group(1), variable.group(2), word.at());
      }
    }
  }

  private static boolean isValue(String word) {
    return !word.startsWith("--") && !VARIABLE.matcher(word).matches();
  }

  private void add(String shown, String value, ConfigOrigin at) {
    boolean isArgument = shown.startsWith("--");
    String name = shown.replaceFirst("^--", "").toLowerCase(Locale.ROOT).replace('-', '_');
    Given fresh = new Given(shown, value, at, isArgument);
    Given earlier = given.get(name);
    boolean isStronger = earlier == null || isArgument || !earlier.isArgument();
    Given kept = earlier == null || isStronger ? fresh : earlier;
    given.put(name, kept);
    if (earlier != null && !meaning(name, earlier).equals(meaning(name, fresh))) {
      Given weaker = isStronger ? earlier : fresh;
      String why = kept.shown() + " says " + meaning(name, kept);
      draft.leftOut(weaker.at(), weaker.shown(), why);
    }
  }

  /** Writes what there is into the draft, with what is wrong. */
  void convert() {
    StoreConfig config = new StoreConfig(values());
    checkSwitches(config);
    long read = config.get(READ_IOV);
    long write = config.get(WRITE_IOV);
    int ranks = config.get(TP);
    long needed = ranks * (read + write);
    container(ranks + (ranks == 1 ? " rank" : " ranks"), needed).lines().forEach(draft::comment);
    draft.set(
        "storage_backends",
        List.of("/3fs/stage/3fs/rtp_llm"),
        "RTP-LLM's directory, on the mount of 3FS. Blocks that RTP-LLM stored are not read.");
    draft.set("local_rank_size", ranks, "Ranks of this machine: RTP-LLM's TP_SIZE.");
    boolean hasMemory = config.get(MEMORY_MB) > 0;
    draft.set(
        "cache_buffer_capacity_gb",
        hasMemory ? config.get(MEMORY_MB) / 1024.0 : DEFAULT_CACHE_GIB,
        hasMemory
            ? "Host memory of each rank: RTP-LLM's memory_block_cache_size_mb."
            : "Host memory of each rank, which RTP-LLM does without: blocks pass through it.");
    draft.set("iov_read_size", read, "Shared memory of each rank for reading from 3FS, in bytes.");
    draft.set("iov_write_size", write, "The same for writing.");
    if (config.isSet(READ_TIMEOUT) || config.isSet(WRITE_TIMEOUT)) {
      draft.set(
          "timeout_ms",
          Math.max(config.get(READ_TIMEOUT), config.get(WRITE_TIMEOUT)),
          "The longer of RTP-LLM's threefs_read_timeout_ms and threefs_write_timeout_ms.");
    }
    draft.findings.addAll(config.problems());
    checkVolumes(needed);
    reportTheRest();
  }

  private static String container(String ranks, long neededBytes) {
    long needed = Math.ceilDiv(neededBytes, GIB);
    // RTP-LLM's example gives a quarter more to other users of shared memory: 40 for 32.
    long recommended = Math.ceilDiv(needed * 5, 4);
    return """
    Made for RTP-LLM with 3FS, %1$s.

    What the container needs (ucm doctor --config FILE looks at it from within):
     - /dev/shm of %3$s GiB: %2$s for reading from and writing to 3FS on all ranks, the rest for others. Add \
    cache_buffer_capacity_gb for each rank to have the Cache in it, without a copy.
       JSON_VOLUMES: {"name":"shm-vol","emptyDir":{"medium":"Memory","sizeLimit":"%3$sGi"}}
       JSON_VOLUME_MOUNTS: {"mountPath":"/dev/shm","name":"shm-vol"}
     - memory: no less than /dev/shm, which counts towards it.
     - the mount of 3FS, with mounts of the host shown in the container:
       JSON_VOLUMES: {"name":"shared-mountpoint","emptyDir":{}}
       JSON_VOLUME_MOUNTS: {"mountPath":"/3fs/stage/","name":"shared-mountpoint",\
    "mountPropagation":"HostToContainer"}
     - no limit of locked memory: ULIMITS=(memlock:-1:-1)
     - the labels of your site for the FUSE service and against RDMA loopback.
    """
        .formatted(ranks, needed, recommended);
  }

  private Map<String, StoreConfig.Value> values() {
    Map<String, StoreConfig.Value> values = new LinkedHashMap<>();
    for (ConfigKey<?> key : KEYS) {
      Given found = given.get(key.name());
      if (found != null) {
        values.put(key.name(), new StoreConfig.Value(meaning(key.name(), found), found.at()));
      }
    }
    return values;
  }

  /** Switches are written in several ways, and numbers as words of a shell. */
  private static Object meaning(String name, Given found) {
    String value = found.value().strip();
    if (name.equals(REUSE.name()) || name.equals(ENABLE.name())) {
      return switch (value.toLowerCase(Locale.ROOT)) {
        // An argument without a value turns on what it names.
        case "" -> found.isArgument() ? true : value;
        case "1", "true", "yes", "on" -> true;
        case "0", "false", "no", "off" -> false;
        default -> value;
      };
    }
    try {
      return Long.valueOf(value);
    } catch (NumberFormatException e) {
      return value;
    }
  }

  private void checkSwitches(StoreConfig config) {
    boolean isRead = !given.containsKey(ENABLE.name()) || config.find(ENABLE).isPresent();
    if (isRead && !config.get(ENABLE)) {
      draft.error(
          at(ENABLE),
          "ENABLE_3FS",
          "is not on, so RTP-LLM keeps nothing in 3FS: set ENABLE_3FS=1 or --enable_3fs True");
    } else if (!config.get(REUSE)) {
      draft.warning(
          at(REUSE),
          "REUSE_CACHE",
          "is not on, and RTP-LLM uses 3FS only with it; UCM always does");
    }
  }

  private ConfigOrigin at(ConfigKey<?> key) {
    Given found = given.get(key.name());
    return found == null ? root : found.at();
  }

  /** Looks whether the shared memory that the container is given is enough. */
  private void checkVolumes(long neededBytes) {
    Given volumes = given.get(VOLUMES);
    Matcher limit = SIZE_LIMIT.matcher(volumes == null ? "" : volumes.value());
    if (volumes != null && limit.find() && Long.parseLong(limit.group(1)) * GIB < neededBytes) {
      draft.warning(
          volumes.at(),
          volumes.shown(),
          "gives %s GiB of shared memory; the ranks need %s: raise sizeLimit"
              .formatted(limit.group(1), Math.ceilDiv(neededBytes, GIB)));
    }
  }

  private void reportTheRest() {
    given.forEach(
        (name, found) -> {
          boolean isKnown = KEYS.stream().anyMatch(key -> key.name().equals(name));
          if (!isKnown && !OF_CONTAINER.contains(name)) {
            draft.leftOut(found.at(), found.shown(), "UCM has no counterpart for it");
          }
        });
  }

  private static ConfigKey<Long> iov(String name) {
    return ConfigKey.longInteger(name).range(1 << 20, 1L << 40).defaultTo(4 * GIB);
  }

  private static ConfigKey<Integer> timeout(String name, int millis) {
    return ConfigKey.integer(name).range(1, 86_400_000).defaultTo(millis);
  }
}
