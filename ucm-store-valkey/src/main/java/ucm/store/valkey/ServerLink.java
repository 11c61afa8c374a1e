package ucm.store.valkey;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.ClientOptions.DisconnectedBehavior;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.async.BaseRedisAsyncCommands;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.RedisCommand;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.api.config.StoreConfig;

/** The client and its connections; all commands of a block go through one of them, in order. */
final class ServerLink {

  private static final long CONNECT_MILLIS = 10_000;
  private static final long QUIET_MILLIS = 0;
  private static final long SHUTDOWN_MILLIS = 2_000;

  private final StoreConfig config;
  private final Duration timeout;
  private final ShardCodec codec = new ShardCodec();
  private final ClientResources resources;
  private final List<BaseRedisAsyncCommands<String, ShardMove>> connections = new ArrayList<>();
  private final Runnable shutdown;

  /**
   * Connects.
   *
   * @param timeout of a task
   * @param threads makes threads of a role
   * @throws StoreException when no server can be reached, or it refuses
   */
  ServerLink(StoreConfig config, Duration timeout, Function<String, ThreadFactory> threads) {
    this.config = config;
    this.timeout = timeout;
    int count = config.get(ValkeyConfig.CONNECTIONS);
    this.resources =
        DefaultClientResources.builder()
            .ioThreadPoolSize(Math.max(2, count))
            .computationThreadPoolSize(2)
            .threadFactoryProvider(pool -> threads.apply(role(pool)))
            .build();
    Runnable stop = () -> {};
    try {
      List<RedisURI> uris = uris();
      if (config.get(ValkeyConfig.CLUSTER)) {
        RedisClusterClient client = RedisClusterClient.create(resources, uris);
        stop = () -> stop(client);
        client.setOptions(ClusterClientOptions.builder(options()).build());
        for (int i = 0; i < count; i++) {
          connections.add(client.connect(codec).async());
        }
      } else {
        RedisClient client = RedisClient.create(resources);
        stop = () -> stop(client);
        client.setOptions(options());
        for (int i = 0; i < count; i++) {
          connections.add(client.connect(codec, uris.getFirst()).async());
        }
      }
      shutdown = stop;
    } catch (IOException | RuntimeException e) {
      stop.run();
      resources
          .shutdown(QUIET_MILLIS, SHUTDOWN_MILLIS, TimeUnit.MILLISECONDS)
          .awaitUninterruptibly();
      Throwable cause = e.getCause() == null ? e : e.getCause();
      throw new StoreException(
          "Valkey cannot use the servers of valkey_nodes "
              + ValkeyConfig.nodes(config)
              + ": "
              + cause,
          e);
    }
  }

  /** Waits in a way that no interrupt cuts short, as nothing would stop it later. */
  private static void stop(AbstractRedisClient client) {
    client.shutdownAsync(QUIET_MILLIS, SHUTDOWN_MILLIS, TimeUnit.MILLISECONDS).join();
  }

  private static String role(String pool) {
    return pool.contains("timer") ? "timer" : pool.contains("EventLoop") ? "io" : "events";
  }

  private List<RedisURI> uris() throws IOException {
    List<RedisURI> uris = new ArrayList<>();
    boolean tls = config.get(ValkeyConfig.TLS);
    Optional<String> passwordFile = config.find(ValkeyConfig.PASSWORD_FILE);
    for (ValkeyConfig.Node node : ValkeyConfig.nodes(config)) {
      RedisURI.Builder uri =
          RedisURI.builder()
              .withHost(node.host())
              .withPort(node.port())
              .withSsl(tls)
              .withVerifyPeer(tls)
              .withTimeout(timeout);
      if (passwordFile.isPresent()) {
        List<String> lines = Files.readAllLines(Path.of(passwordFile.get()));
        String password = lines.isEmpty() ? "" : lines.getFirst();
        uri.withAuthentication(config.get(ValkeyConfig.USERNAME), (CharSequence) password);
      }
      uris.add(uri.build());
    }
    return uris;
  }

  private ClientOptions options() {
    ClientOptions.Builder options =
        ClientOptions.builder()
            // A server that is down answers at once: a cache must not wait for it. Connections to
            // the servers of a cluster are made when they are needed, so commands wait for them.
            .disconnectedBehavior(
                config.get(ValkeyConfig.CLUSTER)
                    ? DisconnectedBehavior.DEFAULT
                    : DisconnectedBehavior.REJECT_COMMANDS)
            .socketOptions(
                SocketOptions.builder()
                    .connectTimeout(Duration.ofMillis(Math.min(CONNECT_MILLIS, timeout.toMillis())))
                    .build())
            .timeoutOptions(TimeoutOptions.builder().timeoutSource(new TaskTimeouts()).build());
    config
        .find(ValkeyConfig.TLS_CA)
        .map(file -> SslOptions.builder().trustManager(new File(file)).build())
        .ifPresent(options::sslOptions);
    return options.build();
  }

  /** Takes the server's answer for one shard: its bytes, or the number that says it was stored. */
  private static final class MoveReply extends CommandOutput<String, ShardMove, ShardMove> {

    private final ShardMove move;

    MoveReply(ShardCodec codec, ShardMove move) {
      super(codec, move);
      this.move = move;
    }

    @Override
    public void set(@Nullable ByteBuffer bytes) {
      // Null: there is no such shard.
      if (bytes != null) {
        move.readFrom(bytes);
      }
    }

    @Override
    public void set(long stored) {
      // 0 when it was there already, which is as good.
    }

    /** What is left of the shard's time, which the client gives the command. */
    long millisLeft() {
      return Math.max(1, move.nanosLeft() / 1_000_000);
    }
  }

  /** Each shard's command ends with the task it belongs to. */
  private final class TaskTimeouts extends TimeoutOptions.TimeoutSource {
    @Override
    public long getTimeout(RedisCommand<?, ?, ?> command) {
      return command.getOutput() instanceof MoveReply reply
          ? reply.millisLeft()
          : timeout.toMillis();
    }
  }

  /** How many shards of a block the server has. */
  CompletionStage<Long> shardsOf(String key) {
    return dispatch(key, CommandType.HLEN, new IntegerOutput<>(codec), args(key));
  }

  /** Removes a block; says how many there were. */
  CompletionStage<Long> remove(String key) {
    return dispatch(key, CommandType.UNLINK, new IntegerOutput<>(codec), args(key));
  }

  /** Stores or fetches a shard; what was fetched is in the move when the stage is complete. */
  CompletionStage<ShardMove> move(ShardMove move) {
    String key = move.key();
    CommandArgs<String, ShardMove> args = args(key).add(move.shardIndex());
    MoveReply reply = new MoveReply(codec, move);
    return move.isLoad()
        ? dispatch(key, CommandType.HGET, reply, args)
        : dispatch(key, CommandType.HSETNX, reply, args.addValue(move));
  }

  /** Has a block removed so long from now. */
  void expire(String key, int seconds) {
    CompletionStage<Long> _ =
        dispatch(key, CommandType.EXPIRE, new IntegerOutput<>(codec), args(key).add(seconds));
  }

  private <T> CompletionStage<T> dispatch(
      String key,
      CommandType command,
      CommandOutput<String, ShardMove, T> output,
      CommandArgs<String, ShardMove> args) {
    try {
      return connection(key).dispatch(command, output, args);
    } catch (RuntimeException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  private CommandArgs<String, ShardMove> args(String key) {
    return new CommandArgs<>(codec).addKey(key);
  }

  private BaseRedisAsyncCommands<String, ShardMove> connection(String key) {
    return connections.get(Math.floorMod(key.hashCode(), connections.size()));
  }

  void close() {
    shutdown.run();
    resources.shutdown(QUIET_MILLIS, SHUTDOWN_MILLIS, TimeUnit.MILLISECONDS).awaitUninterruptibly();
  }
}
