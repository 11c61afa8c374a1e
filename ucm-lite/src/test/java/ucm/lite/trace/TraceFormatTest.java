package ucm.lite.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;

class TraceFormatTest {
  private static final String META =
      "UCMTraceMeta: type=standard, is_mla=False, vllm_hash_block_size=128,"
          + " hbm_block_data_size=1048576";
  private static final String ID = "00112233445566778899aabbccddeeff";

  @TempDir Path directory;
  private final CollectingVisitor visitor = new CollectingVisitor();

  @Test
  void readsMooncakeLines() {
    TraceReadReport report = read(TraceFiles.MOONCAKE);

    assertThat(report.format()).isEqualTo(TraceFormat.MOONCAKE);
    TraceRequest request = visitor.requests.getFirst();
    assertThat(request.timestampMillis()).isEqualTo(27);
    assertThat(request.requestId()).isEmpty();
    assertThat(request.inputTokens()).isEqualTo(1100);
    assertThat(request.outputTokens()).isEqualTo(52);
    assertThat(request.blockTokens()).isEqualTo(512);
    assertThat(request.blockCount()).isEqualTo(3);
    assertThat(request.ids()).isEqualTo(BlockIds.wrap(new long[] {0, 46, 0, 47, 0, 2353}));
    assertThat(report.problems()).isEmpty();
  }

  @Test
  void readsQwenBailianLines() {
    TraceReadReport report = read(TraceFiles.BAILIAN);

    assertThat(report.format()).isEqualTo(TraceFormat.QWEN_BAILIAN);
    TraceRequest request = visitor.requests.getFirst();
    assertThat(request.timestampMillis()).isCloseTo(61_114, within(1e-6));
    assertThat(request.requestId()).isEqualTo("159");
    assertThat(request.inputTokens()).isEqualTo(33);
    assertThat(request.outputTokens()).isEqualTo(132);
    assertThat(request.blockTokens()).isEqualTo(16);
    assertThat(request.ids()).isEqualTo(BlockIds.wrap(new long[] {0, 1089, 0, 1090, 0, 6326}));
    assertThat(report.problems()).isEmpty();
  }

  @Test
  void readsIdsOf64BitsSignedOrNot() {
    read(
        TraceFiles.BAILIAN.replace(
            "[1089, 1090, 6326]", "[18446744073709551615, 9223372036854775808, -5]"));

    assertThat(visitor.requests.getFirst().ids())
        .isEqualTo(BlockIds.wrap(new long[] {0, -1, 0, Long.MIN_VALUE, 0, -5}));
  }

  @Test
  void readsJsonFieldsInAnyOrderAndSkipsUnknownOnes() {
    read(
        "{\"hash_ids\":[1],\"prompt\":\"{[\\\"\",\"x\":{\"timestamp\":[9]},\"output_length\":0,"
            + "\"input_length\":5,\"timestamp\":1.5e3}");

    TraceRequest request = visitor.requests.getFirst();
    assertThat(request.timestampMillis()).isEqualTo(1500);
    assertThat(request.inputTokens()).isEqualTo(5);
    assertThat(request.ids()).isEqualTo(BlockIds.wrap(new long[] {0, 1}));
  }

  @Test
  void readsTimestampsAsStringsAndInAnyUnitOfTheWallClock() {
    TraceReadReport report =
        read(
            mooncakeAt("\"27.5\""),
            mooncakeAt("\"1753780607550317897\""),
            mooncakeAt("1753780607550317897"),
            mooncakeAt("1753780607550317"),
            mooncakeAt("1753780607550"));

    assertThat(report.problems()).isEmpty();
    assertThat(visitor.requests.getFirst().timestampMillis()).isEqualTo(27.5);
    assertThat(visitor.requests.subList(1, 5))
        .extracting(TraceRequest::timestampMillis)
        .allSatisfy(millis -> assertThat(millis).isCloseTo(1753780607550.3, within(0.4)));
  }

  @Test
  void readsTheWallClockInUcmAndBailianLines() {
    read(TraceFiles.BAILIAN.replace("61.114", "1753780607550"));
    read(TraceFiles.UCM.replace("12.5", "1753780607.55"));

    assertThat(visitor.requests)
        .extracting(TraceRequest::timestampMillis)
        .allSatisfy(millis -> assertThat(millis).isCloseTo(1753780607550.0, within(0.01)));
  }

  @ParameterizedTest
  @CsvSource({
    "prompt_tokens, completion_tokens",
    "input_tokens, output_tokens",
    "num_prompt_tokens, num_completion_tokens",
    "num_prefill_tokens, num_decode_tokens",
    "ContextTokens, GeneratedTokens",
  })
  void readsTokenCountsUnderOtherNames(String input, String output) {
    TraceReadReport report =
        read(
            TraceFiles.MOONCAKE.replace("input_length", input).replace("output_length", output),
            TraceFiles.MOONCAKE.replace("{", "{\"" + input + "\": 7, \"" + output + "\": 7, "),
            TraceFiles.MOONCAKE.replace("}", ", \"" + input + "\": [7]}"));

    assertThat(report.problems()).isEmpty();
    assertThat(visitor.requests).extracting(TraceRequest::inputTokens).containsOnly(1100);
    assertThat(visitor.requests).extracting(TraceRequest::outputTokens).containsOnly(52);
  }

  @Test
  void readsUcmTracesAsJsonWithHexIdsInSeconds() {
    String none =
        "{\"timestamp\": 1.5, \"input_length\": 20, \"output_length\": 9, \"hash_ids\": []}";
    TraceReadReport report =
        read(
            none,
            "{\"timestamp\": 2.5, \"input_length\": 130, \"output_length\": 9, \"hash_ids\": [\""
                + ID
                + "\"]}",
            none.replace("1.5", "3"));

    assertThat(report.format()).isEqualTo(TraceFormat.UCM);
    assertThat(report.badLines()).isZero();
    assertThat(visitor.requests)
        .extracting(TraceRequest::timestampMillis)
        .containsExactly(1500.0, 2500.0, 3000.0);
    assertThat(visitor.requests.get(1).ids())
        .isEqualTo(BlockIds.wrap(new long[] {0x0011223344556677L, 0x8899aabbccddeeffL}));
    assertThat(visitor.requests.get(1).blockTokens()).isEqualTo(128);
  }

  @Test
  void readsUcmLinesThatCallTheIdsHashIds() {
    read(TraceFiles.UCM.replace("ucm_block_ids", "hash_ids"));

    assertThat(visitor.requests.getFirst().blockCount()).isEqualTo(2);
  }

  private static String mooncakeAt(String timestamp) {
    return TraceFiles.MOONCAKE.replaceFirst(
        "\"timestamp\": ?[0-9]+", "\"timestamp\": " + timestamp);
  }

  @Test
  void readsOldUcmLinesWithoutRequestId() {
    TraceReadReport report = read(TraceFiles.UCM);

    assertThat(report.format()).isEqualTo(TraceFormat.UCM);
    TraceRequest request = visitor.requests.getFirst();
    assertThat(request.timestampMillis()).isEqualTo(12_500);
    assertThat(request.requestId()).isEmpty();
    assertThat(request.inputTokens()).isEqualTo(300);
    assertThat(request.outputTokens()).isEqualTo(64);
    assertThat(request.blockTokens()).isEqualTo(128);
    assertThat(request.ids())
        .isEqualTo(
            BlockIds.wrap(
                new long[] {
                  0x0001020304050607L, 0x08090a0b0c0d0e0fL, 0xb76b82eeab7a7f89L, 0x935624e71b78cda6L
                }));
  }

  @Test
  void readsUcmLinesWithRequestIdAmongOtherLinesOfALog() {
    String prefix = "[2026-01-02 03:04:05.678901][UC][I] ";
    TraceReadReport report =
        read(
            prefix + "Init UCMLiteConnector. [41,42]",
            "Traceback (most recent call last):",
            "{\"not\": \"a record\"}",
            prefix
                + "timestamp: 7.25, request_id: chatcmpl-1, a, input_length: 130, output_length: 9,"
                + " ucm_block_ids: ['"
                + ID
                + "'] [41,42]",
            prefix + "request_id: chatcmpl-1, a, hash_time_ms: 0.512, print_time_ms: 0.034 [41,42]",
            prefix + "request_id: x, total_blocks_num: 1, hit hbm: 0, hit external: 0 [41,42]");

    assertThat(report.badLines()).isZero();
    TraceRequest request = visitor.requests.getFirst();
    assertThat(request.requestId()).isEqualTo("chatcmpl-1, a");
    assertThat(request.ids())
        .isEqualTo(BlockIds.wrap(new long[] {0x0011223344556677L, 0x8899aabbccddeeffL}));
  }

  @Test
  void readsNewUcmLinesWithTheBlockSizeOfTheMetaLine() {
    TraceReadReport report =
        read(
            META.replace("=128", "=256"),
            "UCMTrace: timestamp: 1.0, request_id: r, input_length: 600, output_length: 9,"
                + " block_hashes: [\""
                + ID
                + "\", '"
                + ID
                + "']",
            META.replace("=128", "=256"),
            "UCMTrace: timestamp: 2, request_id: s, input_length: 3, output_length: 9,"
                + " block_hashes: []");

    assertThat(visitor.requests).extracting(TraceRequest::blockTokens).containsExactly(256, 256);
    assertThat(visitor.requests).extracting(TraceRequest::blockCount).containsExactly(2, 0);
    assertThat(report.problems()).isEmpty();
  }

  @Test
  void prefersTheTraceBlockSizeOfAMetaLineToThatOfTheEngine() {
    read(META + ", trace_hash_block_size=512", TraceFiles.UCM);

    assertThat(visitor.requests.getFirst().blockTokens()).isEqualTo(512);
  }

  @Test
  void guessesTheBlockSizeOfAUcmTraceThatDoesNotNameIt() {
    TraceReadReport report =
        read(
            "timestamp: 1.0, input_length: 20, output_length: 9, ucm_block_ids: []",
            TraceFiles.UCM.replace("300", "150"));

    assertThat(visitor.requests).extracting(TraceRequest::blockTokens).containsExactly(128, 64);
    assertThat(report.problems()).hasSize(1);
    assertThat(report.problems().getFirst().toString())
        .endsWith(
            "a:2: found a record before any UCMTraceMeta line, taken as 64 tokens a block,"
                + " expected the block size to be named by the trace, or stated");
  }

  @Test
  void guessesTheBlockSizeOfJsonLinesThatAreNotOfTheFormatsOwn() {
    String line =
        "{\"timestamp\": 1000, \"input_length\": 704, \"output_length\": 5, \"hash_ids\": %s}";
    String ids = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    TraceReadReport report = read(line.formatted(ids));

    assertThat(visitor.requests).extracting(TraceRequest::blockTokens).containsExactly(64);
    assertThat(report.problems().getFirst().found())
        .isEqualTo("11 block ids for input_length 704, taken as 64 tokens a block");
  }

  @Test
  void refusesATraceOfWhichMostRequestsContradictItsBlockSize() {
    String fits =
        "{\"timestamp\": 0, \"input_length\": 60, \"output_length\": 5, \"hash_ids\": [0]}";
    String not =
        "{\"timestamp\": 1, \"input_length\": 704, \"output_length\": 5, \"hash_ids\": [0, 1, 2, 3,"
            + " 4, 5]}";

    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> read(fits, not, not))
        .withMessageContaining("2 of 3 requests do not have the blocks of 512 tokens")
        .withMessageContaining("--block-tokens");
    assertThat(read(fits, not).problems()).hasSize(1);
  }

  @Test
  void takesAStatedBlockSizeOverWhatTheTraceSays() {
    String file = TraceFiles.write(directory, "a", META, TraceFiles.UCM);

    TraceReadReport report =
        new TraceReader(100, 64 << 20, 150, System.in).read(List.of(file), visitor);

    assertThat(visitor.requests.getFirst().blockTokens()).isEqualTo(150);
    assertThat(report.problems()).isEmpty();
  }

  @Test
  void warnsWhenTheBlocksDoNotFitTheLength() {
    TraceReadReport report =
        read(TraceFiles.MOONCAKE, TraceFiles.MOONCAKE.replace("46, 47, 2353", "46"));

    assertThat(visitor.requests).hasSize(2);
    assertThat(report.problems())
        .containsExactly(
            new TraceProblem(
                directory.resolve("a").toString(),
                2,
                0,
                "1 block id for input_length 1100",
                "2 or 3 blocks of 512 tokens"));
  }

  @Test
  void keepsTheFirstHundredWarnings() {
    String[] lines = new String[500];
    Arrays.fill(lines, 0, 250, TraceFiles.MOONCAKE);
    Arrays.fill(lines, 250, 500, TraceFiles.MOONCAKE.replace("1100", "9"));

    TraceReadReport report = read(lines);

    assertThat(report.problems()).hasSize(100);
  }

  private TraceReadReport read(String... lines) {
    return new TraceReader().read(List.of(TraceFiles.write(directory, "a", lines)), visitor);
  }
}
