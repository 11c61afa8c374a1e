package ucm.pipeline.convert;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.config.ConfigProblem;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.Setting;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.convert.ConfigConversion.Converted;
import ucm.pipeline.convert.ConfigConversion.Origin;

class ConfigConversionTest {

  // As in LMCache's documentation of its 3FS backend.
  private static final String LMCACHE =
      """
      # 256 Tokens per KV Chunk
      chunk_size: 256
      local_cpu: False

      # Plugin name mode, obtain base_path in extra_config session
      remote_storage_plugins: ["hf3fs.primary"]

      extra_config:
          remote_storage_plugin.hf3fs.primary.base_path: "/3fs/stage/dir1,/3fs/stage/dir2"
          hf3fs_mount_point: "/3fs/stage"
          hf3fs_iov_size: 419430400 #400MB
          hf3fs_ior_entries: 512
          hf3fs_io_depth: -64
          hf3fs_numa_id: 1
          hf3fs_io_thread_num: 8
      """;

  private static Converted lmcache(String yaml) {
    return ConfigConversion.convert(Origin.LMCACHE, "lm.yaml", yaml);
  }

  private static Converted rtp(String text) {
    return ConfigConversion.convert(Origin.RTP_LLM, "start.sh", text);
  }

  private static Object value(Converted converted, String key) {
    UcmConfig config = UcmConfig.parse("converted", converted.yaml());
    assertThat(config.shapeFindings()).isEmpty();
    assertThat(config.pipeline()).hasToString("Cache|Ds3fs");
    Setting setting = config.connector().get(key);
    return setting == null || setting.raw() == null ? "not set" : setting.raw();
  }

  private static List<String> leftOut(Converted converted) {
    assertThat(converted.report().hasErrors()).isFalse();
    return converted.report().findings().stream().map(ConfigProblem::key).toList();
  }

  @Test
  void takesOverEveryKeyOfThePluginMode() {
    Converted converted = lmcache(LMCACHE);
    assertThat(value(converted, "storage_backends"))
        .isEqualTo(List.of("/3fs/stage/dir1", "/3fs/stage/dir2"));
    assertThat(value(converted, "hf3fs_mount_point")).isEqualTo("/3fs/stage");
    assertThat(value(converted, "iov_size")).isEqualTo(419_430_400L);
    assertThat(value(converted, "ior_entries")).isEqualTo(512L);
    assertThat(value(converted, "ior_depth")).isEqualTo(-64L);
    assertThat(value(converted, "numa_id")).isEqualTo(1L);
    assertThat(value(converted, "stream_number")).isEqualTo(8L);
    assertThat(value(converted, "timeout_ms")).isEqualTo("not set");
    assertThat(leftOut(converted)).containsExactly("chunk_size", "local_cpu");
    assertThat(converted.report().text()).contains("lm.yaml:2:1: warning: chunk_size");
    assertThat(converted.yaml()).contains("#  - chunk_size is left out", "#  - local_cpu");
  }

  @Test
  void writesTheDefaultsOfLmcacheWhereUcmHasOthers() {
    Converted converted =
        lmcache("remote_storage_plugins: hf3fs\nextra_config:\n  hf3fs_base_path: /3fs/kv\n");
    assertThat(value(converted, "storage_backends")).isEqualTo(List.of("/3fs/kv"));
    assertThat(value(converted, "stream_number")).isEqualTo(4L);
    assertThat(value(converted, "iov_size")).isEqualTo(200L << 20);
    assertThat(value(converted, "ior_entries")).isEqualTo(256L);
    assertThat(value(converted, "cache_buffer_capacity_gb")).isEqualTo(5.0);
    assertThat(leftOut(converted)).isEmpty();
  }

  @Test
  void readsTheDeprecatedUrl() {
    Converted converted =
        lmcache(
            """
            remote_url: "hf3fs:///3fs/stage/hello, /3fs/stage/world"
            max_local_cpu_size: 2.5
            blocking_timeout_secs: 7
            use_layerwise: true
            """);
    assertThat(value(converted, "storage_backends"))
        .isEqualTo(List.of("/3fs/stage/hello", "/3fs/stage/world"));
    assertThat(value(converted, "cache_buffer_capacity_gb")).isEqualTo(2.5);
    assertThat(value(converted, "timeout_ms")).isEqualTo(7000L);
    assertThat(UcmConfig.parse("converted", converted.yaml()).settings().useLayerwise()).isTrue();
    assertThat(leftOut(converted)).isEmpty();
  }

  @Test
  void directoryOfThePluginComesBeforeThatOfAllAndTheUrl() {
    Converted converted =
        lmcache(
            """
            remote_storage_plugins: ["redis.a", "hf3fs.one", "hf3fs.two"]
            remote_url: "hf3fs:///3fs/url"
            extra_config:
              hf3fs_base_path: /3fs/all
              remote_storage_plugin.hf3fs.one.base_path: /3fs/one
              remote_storage_plugin.hf3fs.two.base_path: /3fs/two
            """);
    assertThat(value(converted, "storage_backends")).isEqualTo(List.of("/3fs/one"));
    assertThat(leftOut(converted))
        .containsExactlyInAnyOrder(
            "redis.a",
            "hf3fs.two",
            "remote_url",
            "hf3fs_base_path",
            "remote_storage_plugin.hf3fs.two.base_path");
  }

  @Test
  void tellsAllBadValuesTogetherWithTheirPlaces() {
    String bad =
        LMCACHE
            .replace("419430400", "1000")
            .replace("entries: 512", "entries: many")
            .replace("thread_num: 8", "thread_num: 17")
            .replace("\"/3fs/stage\"", "/elsewhere");
    assertThatThrownBy(() -> lmcache(bad))
        .isInstanceOf(ConfigException.class)
        .hasMessageContainingAll(
            "lm.yaml:11:21: error: hf3fs_iov_size",
            "104857600 to 2147483648",
            "hf3fs_ior_entries",
            "hf3fs_io_thread_num",
            "2 to 16",
            "/3fs/stage/dir1 is not below it")
        .hasMessageContaining("5 errors");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "chunk_size: 256",
        "remote_url: \"redis://host:1\"",
        "remote_url: \"hf3fs://relative\"",
        "remote_url: \"hf3fs:///a,,/b\"",
        "remote_url: \"hf3fs:///a,/a\"",
        "remote_url: 7",
        "remote_storage_plugins: [\"hf3fs.x\"]",
        "remote_storage_plugins: {a: 1}",
        "remote_url: \"hf3fs:///a\"\nextra_config: 3",
        "remote_url: \"hf3fs:///a\"\nmax_local_cpu_size: 0",
        "remote_url: [",
        "- a",
        ""
      })
  void refusesWhatCannotBeConverted(String yaml) {
    assertThatThrownBy(() -> lmcache(yaml))
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("lm.yaml")
        .hasMessageContaining("error");
  }

  @Test
  void textOfOthersStaysText() {
    Converted converted =
        lmcache("remote_url: 'hf3fs:///a\"b\\c: # [d'\n\"x\\ninjected: 1\\nq\": 1\n");
    assertThat(value(converted, "storage_backends")).isEqualTo(List.of("/a\"b\\c: # [d"));
    assertThat(converted.yaml().lines()).noneMatch(line -> line.startsWith("injected"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "REUSE_CACHE=1 ENABLE_3FS=1",
        "export REUSE_CACHE=1\nexport ENABLE_3FS=true # on",
        "--reuse_cache True --enable_3fs True",
        "--reuse_cache=True \\\n  --enable-3fs=1",
        "docker run -e REUSE_CACHE=1 -e \"ENABLE_3FS=1\" image --enable_3fs"
      })
  void readsTheSwitchesOfRtpLlmHoweverTheyAreWritten(String text) {
    Converted converted = rtp(text);
    assertThat(value(converted, "storage_backends")).isEqualTo(List.of("/3fs/stage/3fs/rtp_llm"));
    assertThat(value(converted, "iov_read_size")).isEqualTo(4L << 30);
    assertThat(value(converted, "iov_write_size")).isEqualTo(4L << 30);
    assertThat(value(converted, "timeout_ms")).isEqualTo("not set");
    assertThat(leftOut(converted)).isEmpty();
    assertThat(converted.yaml()).contains("HostToContainer", "memlock:-1:-1", "/dev/shm of 10 GiB");
  }

  @Test
  void sizesTheContainerForAllRanks() {
    Converted converted = rtp("REUSE_CACHE=1 ENABLE_3FS=1 TP_SIZE=4");
    assertThat(converted.yaml()).contains("/dev/shm of 40 GiB: 32 for", "\"sizeLimit\":\"40Gi\"");
    Converted smaller =
        rtp(
            "REUSE_CACHE=1 ENABLE_3FS=1 --tp_size 2 --threefs_read_iov_size 1073741824"
                + " THREEFS_WRITE_IOV_SIZE=2147483648 THREEFS_READ_TIMEOUT_MS=5000"
                + " MEMORY_BLOCK_CACHE_SIZE_MB=2048");
    assertThat(value(smaller, "iov_read_size")).isEqualTo(1L << 30);
    assertThat(value(smaller, "iov_write_size")).isEqualTo(2L << 30);
    assertThat(value(smaller, "timeout_ms")).isEqualTo(5000L);
    assertThat(value(smaller, "cache_buffer_capacity_gb")).isEqualTo(2.0);
    assertThat(smaller.yaml()).contains("/dev/shm of 8 GiB: 6 for");
  }

  @Test
  void tellsOfSharedMemoryThatIsTooSmall() {
    String volumes =
        "\"JSON_VOLUMES=[{\\\"name\\\":\\\"shm-vol\\\",\\\"emptyDir\\\":"
            + "{\\\"medium\\\": \\\"Memory\\\",\\\"sizeLimit\\\":\\\"%dGi\\\"}}]\",\n";
    String start = "REUSE_CACHE=1 ENABLE_3FS=1 TP_SIZE=4\n";
    assertThat(leftOut(rtp(start + volumes.formatted(40)))).isEmpty();
    assertThat(rtp(start + volumes.formatted(16)).report().text())
        .contains("start.sh:2:1", "gives 16 GiB", "need 32");
  }

  @Test
  void tellsWhatOfRtpLlmHasNoCounterpart() {
    Converted converted =
        rtp("REUSE_CACHE=0 ENABLE_3FS=0\npython3 -m x --enable_3fs True --model_type qwen_2\n");
    assertThat(leftOut(converted)).containsExactly("REUSE_CACHE", "ENABLE_3FS", "--model_type");
    assertThat(converted.report().text())
        .contains("--enable_3fs says true", "RTP-LLM uses 3FS only with it");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "REUSE_CACHE=1",
        "ENABLE_3FS=0",
        "ENABLE_3FS=perhaps",
        "ENABLE_3FS=1 TP_SIZE=none",
        "ENABLE_3FS=1 TP_SIZE=0",
        "ENABLE_3FS=\"1"
      })
  void refusesWhatKeepsNothingIn3fsOrIsNoValue(String text) {
    assertThatThrownBy(() -> rtp(text))
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("start.sh")
        .hasMessageContaining("1 error");
  }
}
