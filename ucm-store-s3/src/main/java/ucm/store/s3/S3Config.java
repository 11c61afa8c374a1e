package ucm.store.s3;

import java.net.InetAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ClientSettings;

/**
 * What the store {@code S3} is told: its keys, and their values, checked. Credentials are none of them: they
 * come by the standard chain of AWS.
 *
 * @param searches whether look-ups of prompts ask for some of their blocks only
 */
record S3Config(
    ClientSettings client,
    String prefix,
    int concurrency,
    long knownNanos,
    boolean searches,
    long draftBytes,
    long capacityBytes) {

  static final ConfigKey<String> ENDPOINTS =
      ConfigKey.text("s3_endpoints")
          .defaultDescribed("that of AWS in s3_region")
          .doc(
              "Servers of the bucket, as http(s)://host:port, several joined by commas; a request"
                  + " goes to the one that has the least to do of those that answer.");
  static final ConfigKey<String> BUCKET =
      ConfigKey.text("s3_bucket").require().doc("The bucket that holds the blocks.");
  static final ConfigKey<String> PREFIX =
      ConfigKey.text("s3_prefix")
          .defaultTo("ucm")
          .doc("What the keys of the objects begin with; those who share blocks agree on it.");
  static final ConfigKey<String> REGION =
      ConfigKey.text("s3_region")
          .defaultTo("us-east-1")
          .doc("The region that requests are signed for; many servers take any.");
  static final ConfigKey<Boolean> PATH_STYLE =
      ConfigKey.flag("s3_path_style")
          .defaultDescribed("true with s3_endpoints, otherwise false")
          .doc("Whether the bucket is named in the path of a request instead of before the host.");
  static final ConfigKey<String> CA_FILE =
      ConfigKey.text("s3_ca_file")
          .doc("PEM file of the authorities to trust, instead of those that the machine trusts.");
  static final ConfigKey<Boolean> PLAINTEXT =
      ConfigKey.flag("s3_plaintext")
          .defaultTo(false)
          .doc("Allows http:// to other machines: blocks then pass the network in the clear.");
  static final ConfigKey<Double> CAPACITY_GB =
      ConfigKey.number("s3_capacity_gb")
          .atLeast(0)
          .defaultTo(0.0)
          .unit("GiB")
          .doc(
              "Most space that blocks below s3_prefix may take: every 5 minutes, and when it has"
                  + " stored a 32nd of that itself, one of the processes that share them removes"
                  + " those that were stored, or loaded and so refreshed, longest ago. 0 removes"
                  + " nothing, and leaves that to a lifecycle rule of the bucket.");
  static final ConfigKey<Integer> CONCURRENCY =
      ConfigKey.integer("s3_concurrency")
          .range(1, 512)
          .defaultTo(16)
          .unit("requests")
          .doc("Blocks that are loaded and stored at once; fewer when the server says SlowDown.");
  static final ConfigKey<Integer> FIRST_BYTE_MS =
      ConfigKey.integer("s3_first_byte_ms")
          .range(10, 600_000)
          .defaultTo(3000)
          .unit("ms")
          .doc(
              "How long a connection, and the first byte of an answer, may take; a block to be"
                  + " stored has a second for each MiB more.");
  static final ConfigKey<Integer> KNOWN_S =
      ConfigKey.integer("s3_known_s")
          .range(0, 86_400)
          .defaultTo(60)
          .unit("s")
          .doc("How long a block that this process stored or loaded is there without asking.");
  static final ConfigKey<String> LOOKUP =
      ConfigKey.choice("s3_lookup", "search", "every")
          .defaultTo("search")
          .doc(
              "How far a prompt reaches: search asks for 16 blocks at equal distances and goes on"
                  + " where they end, every asks for each block.");
  static final ConfigKey<Integer> DRAFT_MB =
      ConfigKey.integer("s3_draft_mb")
          .range(1, 1 << 20)
          .defaultTo(1024)
          .unit("MiB")
          .doc("Memory for blocks that come shard by shard, until they are whole and stored.");

  static final List<ConfigKey<?>> KEYS =
      CommonKeys.with(
          ENDPOINTS,
          BUCKET,
          PREFIX,
          REGION,
          PATH_STYLE,
          CA_FILE,
          PLAINTEXT,
          CAPACITY_GB,
          CONCURRENCY,
          FIRST_BYTE_MS,
          KNOWN_S,
          LOOKUP,
          DRAFT_MB,
          CommonKeys.RUNNING_QUEUE_DEPTH);

  private static final Pattern BUCKET_NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{2,62}");
  private static final Pattern PREFIX_NAME = Pattern.compile("[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*");
  private static final Pattern REGION_NAME = Pattern.compile("[A-Za-z0-9-]+");
  private static final int LOOKUPS_AT_ONCE = 16;
  private static final long MOST_PART = 64 << 20;
  private static final long MB = 1 << 20;
  private static final double GB = 1 << 30;

  /**
   * Reads and checks all keys.
   *
   * @return the configuration; nothing when an error was recorded
   */
  static Optional<S3Config> from(StoreConfig config) {
    Optional<BlockLayout> layout = CommonKeys.layout(config);
    KEYS.stream().filter(key -> !CommonKeys.LAYOUT_KEYS.contains(key)).forEach(config::get);
    layout
        .filter(it -> it.shardCount() > ObjectFormat.MOST_SHARDS)
        .ifPresent(
            it ->
                config.reject(
                    CommonKeys.SHARD_SIZE,
                    ("gives a block %s shards; the metadata of an object have room for the"
                            + " checksums of %s: raise shard_size")
                        .formatted(it.shardCount(), ObjectFormat.MOST_SHARDS)));
    return client(config, layout)
        .filter(_ -> !config.hasErrors())
        .map(
            client ->
                new S3Config(
                    client,
                    config.get(PREFIX),
                    config.get(CONCURRENCY),
                    TimeUnit.SECONDS.toNanos(config.get(KNOWN_S)),
                    "search".equals(config.get(LOOKUP)),
                    config.get(DRAFT_MB) * MB,
                    capacityBytes(config)));
  }

  /** How much the blocks below the prefix may take; 0 without a bound. */
  static long capacityBytes(StoreConfig config) {
    return (long) (config.get(CAPACITY_GB) * GB);
  }

  /** Where the bucket is, as far as it is told without fault. */
  static Optional<ClientSettings> client(StoreConfig config, Optional<BlockLayout> layout) {
    require(config, BUCKET, BUCKET_NAME, "3 to 63 letters, digits, '.', '-' and '_'");
    require(config, PREFIX, PREFIX_NAME, "letters, digits, '.', '-', '_' and '/' between them");
    require(config, REGION, REGION_NAME, "letters, digits and '-'");
    boolean ofAws = config.find(ENDPOINTS).isEmpty();
    List<URI> endpoints = endpoints(config);
    Optional<String> authorities = config.find(CA_FILE);
    if (authorities.isPresent() && !Files.isReadable(Path.of(authorities.get()))) {
      config.reject(CA_FILE, "names " + authorities.get() + ", which is no file that can be read");
    }
    if (config.hasErrors()) {
      return Optional.empty();
    }
    boolean pathStyle = config.find(PATH_STYLE).orElse(!ofAws);
    config.settle(PATH_STYLE, pathStyle);
    long object = layout.map(it -> new ObjectFormat(it, "").objectSize()).orElse(0L);
    return Optional.of(
        new ClientSettings(
            endpoints,
            config.get(BUCKET),
            config.get(REGION),
            pathStyle,
            authorities.orElse(null),
            config.get(CONCURRENCY) + LOOKUPS_AT_ONCE,
            TimeUnit.MILLISECONDS.toNanos(config.get(FIRST_BYTE_MS)),
            Math.min(object, MOST_PART)));
  }

  private static void require(
      StoreConfig config, ConfigKey<String> key, Pattern pattern, String allowed) {
    String value = config.get(key);
    if (!value.isEmpty() && !pattern.matcher(value).matches()) {
      config.reject(key, "found \"" + value + "\"; allowed are " + allowed);
    }
  }

  private static List<URI> endpoints(StoreConfig config) {
    String given =
        config
            .find(ENDPOINTS)
            .orElseGet(() -> "https://s3." + config.get(REGION) + ".amazonaws.com");
    List<URI> endpoints = new ArrayList<>();
    int entry = 0;
    for (String text : given.split(",", -1)) {
      entry++;
      String fault = null;
      try {
        URI uri = new URI(text.strip());
        fault = fault(uri, config.get(PLAINTEXT));
        endpoints.add(uri);
      } catch (URISyntaxException e) {
        fault = "an endpoint is http(s)://host:port";
      }
      if (fault != null) {
        // Not shown as it is: somebody may have put credentials into it.
        config.reject(ENDPOINTS, "its entry " + entry + " is wrong: " + fault);
      }
    }
    return endpoints;
  }

  private static @Nullable String fault(URI uri, boolean plaintext) {
    String scheme = uri.getScheme();
    boolean isHttp = "http".equals(scheme) || "https".equals(scheme);
    if (!isHttp || uri.getHost() == null) {
      return "an endpoint is http(s)://host:port";
    }
    if (uri.getUserInfo() != null) {
      return "credentials do not belong into the configuration; set AWS_ACCESS_KEY_ID and"
          + " AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials";
    }
    boolean hasPath = !uri.getPath().isEmpty() && !"/".equals(uri.getPath());
    if (hasPath || uri.getQuery() != null) {
      return "it has a path; the bucket is named by s3_bucket";
    }
    if ("http".equals(scheme) && !plaintext && !isLoopback(uri.getHost())) {
      return "http to another machine sends blocks in the clear; use https, or allow it by"
          + " s3_plaintext: true";
    }
    return null;
  }

  /** Of a name or an address as it stands: nothing is resolved. */
  private static boolean isLoopback(String host) {
    return "localhost".equals(host)
        || host.startsWith("127.")
        || "[::1]".equals(host)
        || InetAddress.getLoopbackAddress().getHostAddress().equals(host);
  }
}
