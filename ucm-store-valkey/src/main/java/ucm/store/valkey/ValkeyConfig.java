package ucm.store.valkey;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/** The keys of the store, and what no key says by itself. */
final class ValkeyConfig {

  /** Where a server listens. */
  record Node(String host, int port) {}

  /** Of the bytes of a shard and its checksum: no value of the server is longer. */
  private static final long MOST_VALUE_BYTES = 512L << 20;

  static final ConfigKey<String> NODES =
      ConfigKey.text("valkey_nodes")
          .defaultTo("localhost:6379")
          .doc("Servers, as host:port, several joined by commas; of a cluster some are enough.");
  static final ConfigKey<Boolean> CLUSTER =
      ConfigKey.flag("valkey_cluster")
          .defaultTo(false)
          .doc("Whether the servers are a cluster; blocks are then spread over its slots.");
  static final ConfigKey<String> PREFIX =
      ConfigKey.text("valkey_prefix")
          .defaultTo("ucm")
          .doc("What the keys in the server begin with; those who share blocks agree on it.");
  static final ConfigKey<String> USERNAME =
      ConfigKey.text("valkey_username")
          .defaultTo("default")
          .doc("The user to log in as, when valkey_password_file is set.");
  static final ConfigKey<String> PASSWORD_FILE =
      ConfigKey.text("valkey_password_file")
          .doc("File whose first line is the password; read when the store opens.");
  static final ConfigKey<Boolean> TLS =
      ConfigKey.flag("valkey_tls")
          .defaultTo(false)
          .doc("Whether to use TLS; the server's certificate and its name are verified.");
  static final ConfigKey<String> TLS_CA =
      ConfigKey.text("valkey_tls_ca")
          .doc("PEM file of the authority to trust, instead of those that Java trusts.");
  static final ConfigKey<Integer> TTL =
      ConfigKey.integer("valkey_ttl_s")
          .range(0, Integer.MAX_VALUE)
          .defaultTo(0)
          .unit("s")
          .doc("A block is removed so long after its last shard was dumped; 0 keeps it.");
  static final ConfigKey<Integer> CONNECTIONS =
      ConfigKey.integer("valkey_connections")
          .range(1, 64)
          .defaultTo(2)
          .unit("connections")
          .doc("Connections to each server.");
  static final ConfigKey<Integer> WINDOW =
      ConfigKey.integer("valkey_window_mb")
          .range(1, 1 << 16)
          .defaultTo(64)
          .unit("MiB")
          .doc("Bytes sent or asked for and not yet answered; bounds the client's own buffers.");

  static final List<ConfigKey<?>> KEYS =
      Stream.concat(
              Stream.of(
                  NODES,
                  CLUSTER,
                  PREFIX,
                  USERNAME,
                  PASSWORD_FILE,
                  TLS,
                  TLS_CA,
                  TTL,
                  CONNECTIONS,
                  WINDOW,
                  CommonKeys.DEVICE_ID,
                  CommonKeys.TIMEOUT_MS,
                  CommonKeys.RUNNING_QUEUE_DEPTH),
              CommonKeys.LAYOUT_KEYS.stream())
          .toList();

  private ValkeyConfig() {}

  /** Checks the store's own keys; what is wrong with them is recorded. */
  static void check(StoreConfig config) {
    KEYS.forEach(config::get);
    Optional<BlockLayout> layout = CommonKeys.layout(config);
    if (layout.isPresent() && layout.get().shardSize() > MOST_VALUE_BYTES - ShardMove.CRC_BYTES) {
      config.reject(
          CommonKeys.SHARD_SIZE,
          "is " + layout.get().shardSize() + "; a value of the server is below 512 MiB");
    }
    if (nodes(config).size() > 1 && !config.get(CLUSTER)) {
      config.reject(NODES, "names several servers; name one, or set valkey_cluster: true");
    }
    if (config.isSet(TLS_CA) && !config.get(TLS)) {
      config.reject(TLS_CA, "has no effect without valkey_tls: true");
    }
  }

  /** The servers; what is no server is recorded. */
  static List<Node> nodes(StoreConfig config) {
    List<Node> nodes = new ArrayList<>();
    for (String text : config.get(NODES).split(",", -1)) {
      int colon = text.lastIndexOf(':');
      try {
        int port = Integer.parseInt(text.substring(colon + 1).strip());
        if (colon < 1 || port < 1 || port > 65_535) {
          throw new IllegalArgumentException("no host or no port");
        }
        nodes.add(new Node(text.substring(0, colon).strip(), port));
      } catch (IllegalArgumentException e) {
        config.reject(NODES, "names \"" + text + "\"; a server is host:port");
      }
    }
    return nodes;
  }
}
