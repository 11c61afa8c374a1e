package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;

final class CommonKeysTest {

  static final Arguments[] GOOD = {
    Arguments.of(Map.of("block_size", 24), BlockLayout.uniform(24, 24, 24)),
    Arguments.of(Map.of("block_size", 24, "shard_size", 8), BlockLayout.uniform(8, 8, 24)),
    Arguments.of(Map.of("block_size", 24, "tensor_size", 4), BlockLayout.uniform(4, 24, 24)),
    Arguments.of(
        Map.of("block_size", 24, "shard_size", 8, "tensor_size", 4), BlockLayout.uniform(4, 8, 24)),
    Arguments.of(
        Map.of("block_size", 24, "tensor_size_list", List.of(5, 3)),
        BlockLayout.of(new long[] {5, 3}, 24)),
    Arguments.of(
        Map.of("block_size", 24, "shard_size", 8, "tensor_size_list", List.of(5, 3)),
        BlockLayout.of(new long[] {5, 3}, 24)),
    // The KV cache of a large model: 80 layers of 128 tokens, in one shard and in one per layer.
    Arguments.of(
        Map.of("block_size", 80L * 524_288, "shard_size", 524_288, "tensor_size", 262_144),
        BlockLayout.uniform(262_144, 524_288, 80L * 524_288))
  };

  static final Arguments[] BAD = {
    Arguments.of(Map.of(), "block_size", "is required and not set"),
    Arguments.of(Map.of("block_size", 0), "block_size", "found 0; allowed is"),
    Arguments.of(
        Map.of("block_size", 24, "shard_size", 7),
        "shard_size",
        "is 7; block_size 24 must be a multiple of it"),
    Arguments.of(
        Map.of("block_size", 24, "shard_size", 48),
        "shard_size",
        "is 48; block_size 24 must be a multiple of it"),
    Arguments.of(
        Map.of("block_size", 24, "shard_size", 8, "tensor_size", 3),
        "tensor_size",
        "is 3; shard_size 8 must be a multiple of it"),
    Arguments.of(
        Map.of("block_size", 24, "shard_size", 8, "tensor_size_list", List.of(5, 4)),
        "tensor_size_list",
        "sums to 9 bytes; the sum must be shard_size 8"),
    Arguments.of(
        Map.of("block_size", 24, "tensor_size", 8, "tensor_size_list", List.of(8)),
        "tensor_size_list",
        "set together with tensor_size; keep one of the two"),
    Arguments.of(
        Map.of("block_size", 24, "tensor_size_list", List.of()),
        "tensor_size_list",
        "sums to 0 bytes"),
    Arguments.of(
        Map.of("block_size", 1L << 40, "tensor_size", 1),
        "tensor_size",
        "is 1; a shard would have more than 65536 tensors"),
    Arguments.of(
        Map.of("block_size", 1L << 40, "shard_size", 1),
        "shard_size",
        "is 1; a block would have more than 1048576 shards")
  };

  @ParameterizedTest
  @FieldSource("GOOD")
  void readsTheLayout(Map<String, Object> settings, BlockLayout expected) {
    StoreConfig config = StoreConfig.of(settings);
    assertThat(CommonKeys.layout(config)).contains(expected);
    assertThat(config.problems()).isEmpty();
  }

  @ParameterizedTest
  @FieldSource("BAD")
  void saysWhatDoesNotFit(Map<String, Object> settings, String key, String message) {
    StoreConfig config = StoreConfig.of(settings);
    assertThat(CommonKeys.layout(config)).isEmpty();
    assertThat(config.problems())
        .singleElement()
        .satisfies(
            problem -> {
              assertThat(problem.isError()).isTrue();
              assertThat(problem.key()).isEqualTo(key);
              assertThat(problem.message()).contains(message);
            });
  }

  @Test
  void reportsABadLayoutBesideOtherFaults() {
    StoreConfig config = StoreConfig.of(Map.of("block_size", 24, "shard_size", 7, "device_id", -2));
    config.get(CommonKeys.DEVICE_ID);
    assertThat(CommonKeys.layout(config)).isEmpty();
    assertThat(config.problems())
        .extracting(ConfigProblem::key)
        .containsExactly("device_id", "shard_size");
  }

  @Test
  void pinsTheDefaultsThatStoresShare() {
    StoreConfig config = StoreConfig.of(Map.of());
    assertThat(config.get(CommonKeys.UNIQUE_ID)).isEqualTo("ucm");
    assertThat(config.get(CommonKeys.DEVICE_ID)).isEqualTo(-1);
    assertThat(config.get(CommonKeys.LOCAL_RANK_SIZE)).isEqualTo(1);
    assertThat(config.get(CommonKeys.IO_DIRECT)).isFalse();
    assertThat(config.get(CommonKeys.TIMEOUT_MS)).isEqualTo(30_000);
    assertThat(config.get(CommonKeys.WAITING_QUEUE_DEPTH)).isEqualTo(8192);
    assertThat(config.get(CommonKeys.RUNNING_QUEUE_DEPTH)).isEqualTo(524_288);
    assertThat(config.get(CommonKeys.CPU_AFFINITY_CORES)).isEmpty();
    assertThat(config.problems()).isEmpty();
    assertThat(CommonKeys.BLOCK_SIZE.required()).isTrue();
    assertThat(CommonKeys.STORAGE_BACKENDS.required()).isTrue();
    assertThat(CommonKeys.SHARD_SIZE.defaultText()).isEqualTo("block_size");
    assertThat(CommonKeys.TENSOR_SIZE.defaultText()).isEqualTo("shard_size");
  }
}
