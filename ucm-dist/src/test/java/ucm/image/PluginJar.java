package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.spi.ToolProvider;

/** Compiles a store that knows nothing but {@code ucm.api}, as a third party would. */
final class PluginJar {

  private static final String MODULE_INFO =
      """
      module test.copycat {
        requires ucm.api;
        provides ucm.api.Store with test.copycat.CopycatStore;
      }
      """;

  // Keeps blocks in memory shared by all instances, so that they outlive a restart of the pipeline.
  private static final String STORE =
      """
      package test.copycat;

      import java.lang.foreign.MemorySegment;
      import java.lang.foreign.ValueLayout;
      import java.time.Duration;
      import java.util.BitSet;
      import java.util.List;
            import java.util.Map;
      import java.util.concurrent.ConcurrentHashMap;
      import java.util.concurrent.atomic.AtomicLong;
      import ucm.api.*;
      import ucm.api.config.*;

      @StoreName("Copycat")
      public final class CopycatStore implements Store {
        private static final Map<String, byte[]> SHARDS = new ConcurrentHashMap<>();
        private final AtomicLong taskIds = new AtomicLong();
        private final StoreLife life = new StoreLife("Copycat");
        private BlockLayout layout;

        public List<ConfigKey<?>> configKeys() { return CommonKeys.LAYOUT_KEYS; }
        public void configure(StoreConfig config) {
          life.configured();
          layout = CommonKeys.layout(config).orElse(null);
        }
        public void open(StoreContext context) { life.opened(); }

        public BitSet lookup(BlockIds ids) {
          life.requireOpen();
          BitSet found = new BitSet();
          for (int i = 0; i < ids.size(); i++) {
            boolean whole = true;
            for (int s = 0; s < layout.shardCount(); s++) {
              whole &= SHARDS.containsKey(ids.hex(i) + "/" + s);
            }
            found.set(i, whole);
          }
          return found;
        }
        public int lookupPrefix(BlockIds ids) { return lookup(ids).nextClearBit(0) - 1; }
        public void prefetch(BlockIds ids) { life.requireOpen(); }

        public Task load(Transfer t) { return move(t, true); }
        public Task dump(Transfer t) { return move(t, false); }

        private Task move(Transfer t, boolean load) {
          life.requireOpen();
          TransferTask task = new TransferTask(taskIds.incrementAndGet(), t);
          for (int i = 0; i < t.shardCount(); i++) {
            String key = t.ids().hex(i) + "/" + t.shardIndex(i);
            byte[] bytes = load ? SHARDS.get(key) : new byte[(int) layout.shardSize()];
            if (bytes == null) {
              task.end(i, ShardOutcome.MISSING, null);
              continue;
            }
            int at = 0;
            for (int p = 0; p < t.pieceCount(); p++) {
              MemorySegment memory = t.region(i, p).segment();
              int size = (int) t.pieceSize(p);
              if (load) {
                MemorySegment.copy(bytes, at, memory, ValueLayout.JAVA_BYTE, t.offset(i, p), size);
              } else {
                MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, t.offset(i, p), bytes, at, size);
              }
              at += size;
            }
            if (!load) {
              SHARDS.put(key, bytes);
            }
            task.ok(i);
          }
          return task;
        }

        public FlushResult flush(Duration timeout) { return FlushResult.clean(); }
        public BitSet durable(BlockIds ids) { return lookup(ids); }
        public void close() { life.closed(); }
      }
      """;

  // The API, and JSpecify, which its module wants at compile time.
  private static final String[] API_PATH = System.getProperty("ucm.api.path").split(":", -1);

  private PluginJar() {}

  static void build(Path work, Path jar) throws IOException {
    build(work, jar, Path.of(API_PATH[0]));
  }

  /** Compiles it against a jar of the API. */
  static void build(Path work, Path jar, Path api) throws IOException {
    Path sources = Files.createDirectories(work.resolve("src/test/copycat"));
    Path moduleInfo = work.resolve("src/module-info.java");
    Path store = sources.resolve("CopycatStore.java");
    Path classes = Files.createDirectories(work.resolve("classes"));
    Files.writeString(moduleInfo, MODULE_INFO);
    Files.writeString(store, STORE);
    run(
        "javac",
        "-proc:none",
        "-d",
        classes.toString(),
        "--module-path",
        api + ":" + API_PATH[1],
        moduleInfo.toString(),
        store.toString());
    Files.createDirectories(jar.getParent());
    run("jar", "--create", "--file", jar.toString(), "-C", classes.toString(), ".");
  }

  /** Compiles the stage {@code Faulty}, which fails on demand. */
  static void buildFaulty(Path work, Path jar) throws IOException {
    Path classes = Files.createDirectories(work.resolve("classes"));
    Path sources = Path.of("src/test/resources/faulty");
    run(
        "javac",
        "-proc:none",
        "-d",
        classes.toString(),
        "--module-path",
        String.join(":", API_PATH),
        sources.resolve("module-info.java").toString(),
        sources.resolve("test/faulty/FaultyStage.java").toString());
    Files.createDirectories(jar.getParent());
    run("jar", "--create", "--file", jar.toString(), "-C", classes.toString(), ".");
  }

  /** Writes a configuration that uses the store into a folder. */
  static Path config(Path folder) throws IOException {
    return UcmYaml.in(folder, "store_pipeline: \"Cache|Copycat\"", "cache_buffer_capacity_gb: 0.1");
  }

  private static void run(String tool, String... args) {
    assertThat(ToolProvider.findFirst(tool).orElseThrow().run(System.out, System.err, args))
        .as(tool)
        .isZero();
  }
}
