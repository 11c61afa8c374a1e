package ucm.lite.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.assertj.core.api.ThrowableAssertAlternative;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Inputs that end the reading, and lines that are skipped. */
class BadTraceTest {
  private static final String META = "UCMTraceMeta: type=standard, vllm_hash_block_size=";

  @TempDir Path directory;
  private final CollectingVisitor visitor = new CollectingVisitor();

  @Test
  void refusesNoInputAtAll() {
    assertFails(List.of()).withMessageContaining("no trace named");
  }

  @Test
  void refusesAMissingFileBeforeReadingTheOthers() {
    String good = TraceFiles.write(directory, "good", TraceFiles.MOONCAKE);
    String missing = directory.resolve("missing.jsonl").toString();

    assertFails(List.of(good, missing)).withMessageContaining(missing + " does not exist");
    assertThat(visitor.requests).isEmpty();
  }

  @Test
  void refusesNamesThatCannotBeFiles() {
    assertFails(List.of(" ")).withMessageContaining("empty name");
    assertFails(List.of("a\0b")).withMessageContaining("not a possible file name");
  }

  @Test
  void refusesAnUnreadableFile() throws IOException {
    String file = TraceFiles.write(directory, "a", TraceFiles.MOONCAKE);
    Files.setPosixFilePermissions(Path.of(file), Set.of());
    assumeTrue(!Files.isReadable(Path.of(file)), "this user may read everything");

    assertFails(List.of(file)).withMessageContaining("may not be read by this user");
  }

  @Test
  void saysWhatTheSystemSaysWhenReadingFails() {
    Path unreadable = Path.of("/proc/self/mem");
    assumeTrue(Files.isReadable(unreadable), "no file at hand whose reading fails");

    assertFails(List.of(unreadable.toString()))
        .withMessageContaining("/proc/self/mem cannot be read: ");
  }

  @Test
  void refusesAnEmptyFile() {
    String file = TraceFiles.write(directory, "a", new byte[0]);

    assertFails(List.of(file)).withMessageContaining(file + ": found an empty input, expected");
  }

  @Test
  void refusesAnEmptyGzipFile() {
    String file = TraceFiles.write(directory, "a.gz", TraceFiles.gzip(""));

    assertFails(List.of(file)).withMessageContaining("found an empty input");
  }

  @Test
  void refusesADirectoryWithoutFiles() {
    assertFails(List.of(directory.toString())).withMessageContaining("holds no files");
  }

  @Test
  void refusesADirectoryWithoutRecords() {
    TraceFiles.write(directory, "a.log", "nothing");

    assertFails(List.of(directory.toString())).withMessageContaining("found no trace record in ");
  }

  @Test
  void refusesAFileWithoutAReadableLine() {
    String file = TraceFiles.write(directory, "a.txt", "secret one", "{\"secret\": 1", "3");

    assertFails(List.of(file))
        .withMessageContaining("no trace record in 3 lines")
        .withMessageContaining("a.txt:1:1: found a line of 10 bytes that is no trace record");
  }

  @Test
  void refusesBinaryData() {
    byte[] junk = new byte[5000];
    new Random(1).nextBytes(junk);
    junk[0] = 'x';
    String file = TraceFiles.write(directory, "a.bin", junk);

    assertFails(List.of(file)).withMessageContaining("is binary data (a zero byte at offset ");
  }

  @Test
  void refusesTextInUtf16() {
    String file =
        TraceFiles.write(directory, "a", TraceFiles.MOONCAKE.getBytes(StandardCharsets.UTF_16));

    assertFails(List.of(file))
        .withMessageContaining("is binary data")
        .withMessageContaining("UTF-8");
  }

  @ParameterizedTest
  @CsvSource({
    "28b52ffd, zstd",
    "fd377a585a00, xz",
    "425a6839, bzip2",
    "504b0304, zip",
  })
  void namesOtherCompressionAndHowToUnpackIt(String magic, String name) {
    byte[] bytes = Arrays.copyOf(HexFormat.of().parseHex(magic), 100);
    String file = TraceFiles.write(directory, "a", bytes);

    assertFails(List.of(file))
        .withMessageContaining("is " + name + " data, expected text or gzip: unpack it first");
  }

  @Test
  void refusesTruncatedGzip() {
    byte[] whole = TraceFiles.gzip((TraceFiles.MOONCAKE + "\n").repeat(1000));
    for (int length : new int[] {2, 5, 12, whole.length / 2, whole.length - 8, whole.length - 1}) {
      String file = TraceFiles.write(directory, "a.gz", Arrays.copyOf(whole, length));

      assertFails(List.of(file)).withMessageContaining("ends in the middle of its gzip data");
    }
  }

  @Test
  void refusesDamagedGzip() {
    byte[] bytes = TraceFiles.gzip((TraceFiles.MOONCAKE + "\n").repeat(1000));
    bytes[bytes.length - 6] ^= 1;
    String file = TraceFiles.write(directory, "a.gz", bytes);

    assertFails(List.of(file)).withMessageContaining("damaged gzip data");
  }

  @Test
  void refusesTwoFormatsInOneFile() {
    String file = TraceFiles.write(directory, "a", TraceFiles.MOONCAKE, TraceFiles.BAILIAN);

    assertFails(List.of(file))
        .withMessageContaining("a:2 is a line of a Qwen-Bailian trace (16 tokens a block")
        .withMessageContaining("a:1 is one of a Mooncake trace (512)");
  }

  @Test
  void refusesTwoFormatsInTwoFiles() {
    String a = TraceFiles.write(directory, "a", TraceFiles.UCM);
    String b = TraceFiles.write(directory, "b", TraceFiles.MOONCAKE);

    assertFails(List.of(a, b)).withMessageContaining("b:1 is a line of a Mooncake trace");
  }

  @Test
  void refusesTwoBlockSizesInOneUcmLog() {
    String a = TraceFiles.write(directory, "a", META + 128, TraceFiles.UCM, META + "64");

    assertFails(List.of(a))
        .withMessageContaining(
            "a:3 says 64 tokens a block, but it was 128 before (UCMTraceMeta at");
  }

  @Test
  void refusesABlockSizeNamedAfterAWrongGuess() {
    String a = TraceFiles.write(directory, "a", TraceFiles.UCM, META + "512");

    assertFails(List.of(a)).withMessageContaining("128 before (a guess from the request at ");
  }

  @Test
  void refusesStandardInputNamedTwice() {
    assertFails(List.of("-", "-")).withMessageContaining("named twice");
  }

  @Test
  void stopsAfterTooManyBadLines() {
    String[] lines = new String[200];
    Arrays.fill(lines, "{}");
    lines[0] = TraceFiles.MOONCAKE;
    String file = TraceFiles.write(directory, "a", lines);

    assertFails(List.of(file)).withMessageContaining("a:102: more than 100 bad lines");
  }

  @Test
  void countsBadLinesBeforeTheFirstRecordAndOverAllFiles() {
    TraceReader reader = new TraceReader(3, 64 << 20, 0, System.in);
    String a = TraceFiles.write(directory, "a", "x", "y", TraceFiles.MOONCAKE, "z");
    String b = TraceFiles.write(directory, "b", TraceFiles.MOONCAKE, "last");

    TraceReadReport report = reader.read(List.of(a), visitor);
    assertThat(report.badLines()).isEqualTo(3);
    assertThat(report.problems()).extracting(TraceProblem::line).containsExactly(1L, 2L, 4L);
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> reader.read(List.of(a, b), visitor))
        .withMessageContaining("b:2: more than 3 bad lines");
  }

  @Test
  void skipsALineLongerThanTheBound() {
    TraceReader reader = new TraceReader(100, 200, 0, System.in);
    String tooLong = TraceFiles.MOONCAKE.replace("46,", "46,".repeat(100));
    String file = TraceFiles.write(directory, "a", TraceFiles.MOONCAKE, tooLong);

    TraceReadReport report = reader.read(List.of(file), visitor);

    assertThat(visitor.requests).hasSize(1);
    assertThat(report.problems().getFirst().toString())
        .endsWith(
            "a:2: found a line longer than 200 bytes, expected a shorter one, or a higher limit");
  }

  @Test
  void skipsARequestWithMoreBlocksThanFitInMemoryBounds() {
    String ids = "1,".repeat(RecordDraft.MAX_BLOCKS) + "1";
    String line = TraceFiles.MOONCAKE.replace("46, 47, 2353", ids);
    String file = TraceFiles.write(directory, "a", TraceFiles.MOONCAKE, line);

    TraceReadReport report = new TraceReader().read(List.of(file), visitor);

    assertThat(visitor.requests).hasSize(1);
    assertThat(report.problems().getFirst().found()).isEqualTo("more than 4194304 block ids");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{'timestamp':1                                     |  0 | text that is not valid JSON",
        "{'timestamp':1} {}                                 |  0 | an object without input_length",
        "{'input_length':1,'output_length':1,'hash_ids':[]} |  0 | an object without timestamp",
        "{'timestamp':1,'input_length':1,'hash_ids':[]}     |  0 | an object without output_length",
        "{'timestamp':1,'input_length':1,'output_length':1} |  0 | an object without hash_ids",
        "{'timestamp':1,'input_length':-1}                  | 31 | input_length -1",
        "{'timestamp':1,'input_length':3000000000}          | 31 | input_length 3000000000",
        "{'timestamp':1,'input_length':1e3}                 | 31 | input_length as a number with a"
            + " fraction",
        "{'timestamp':1,'input_length':99999999999999999999}| 31 | input_length beyond 64 bits",
        "{'timestamp':1,'input_length':'secret'}            | 31 | input_length as a string",
        "{'timestamp':-1}                                   | 14 | timestamp -1.0",
        "{'timestamp':1e999}                                | 14 | timestamp Infinity",
        "{'timestamp':'secret'}                             | 14 | timestamp as a string",
        "{'timestamp':null}                                 | 14 | timestamp as null",
        "{'output_length':-7}                               | 18 | output_length -7",
        "{'hash_ids':[1,2.5]}                               | 16 | a number with a fraction in"
            + " hash_ids",
        "{'hash_ids':[1,'secret']}                          | 16 | a string in hash_ids",
        "{'hash_ids':[[1]]}                                 | 14 | an array in hash_ids",
        "{'hash_ids':{'secret':1}}                          | 13 | hash_ids as an object",
        "{'hash_ids':[18446744073709551616]}                | 14 | an integer of 65 bits in"
            + " hash_ids",
        "secret prompt                                      |  1 | a line of 13 bytes that is no"
            + " trace record",
      })
  void skipsABadJsonLineAndSaysWhere(String line, int column, String found) {
    checkBadLine(line.replace('\'', '"'), TraceFiles.MOONCAKE, column, found);
  }

  @Test
  void skipsTwoObjectsInOneLine() {
    checkBadLine(
        TraceFiles.MOONCAKE + "{}",
        TraceFiles.MOONCAKE,
        TraceFiles.MOONCAKE.length() + 1,
        "more text after the object");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "UCMTrace: secret                                      |  0 | a UCMTrace line without"
            + " timestamp",
        "UCMTrace: timestamp: secret                           | 22 | timestamp that is no number",
        "timestamp: 1.0 input_length: 5                        | 15 | something else",
        "timestamp: -1.0, input_length: 5                      | 12 | timestamp -1000.0",
        "timestamp: 1.0, request_id: input_length: 5           | 29 | no input_length after"
            + " request_id",
        "timestamp: 1.0, input_length: -5, output_length: 1    | 31 | input_length -5",
        "timestamp: 1.0, input_length: 5.5, output_length: 1   | 31 | input_length that is no"
            + " integer",
        "timestamp: 1.0, input_length: 5, output_length: None  | 49 | output_length that is no"
            + " integer",
        "timestamp: 1.0, input_length: 5, output_len           | 34 | something else",
        "timestamp: 1.0, input_length: 5, output_length: 1     | 50 | the end of the line",
        "timestamp: 1.0, input_length: 5, output_length: 1, ucm_block_ids: 'secret'  | 67 |"
            + " something else",
        "timestamp: 1.0, input_length: 5, output_length: 1, ucm_block_ids: [secret]  | 68 |"
            + " something else in the list of block ids",
        "timestamp: 1.0, input_length: 5, output_length: 1, ucm_block_ids: ['ab'"
            + "| 71 | something else in a block id",
        "timestamp: 1.0, input_length: 5, output_length: 1, block_hashes: ["
            + "'0123456789abcdef0123456789abcdef0'] | 100 | a block id of more than 32 hex digits",
        "timestamp: 1.0, input_length: 5, output_length: 1, block_hashes: ["
            + "'0123456789abcdef0123456789abcdef' | 101 | the end of the line",
        "UCMTraceMeta: type=standard                           |  0 | a UCMTraceMeta line without a"
            + " block size",
        "UCMTraceMeta: vllm_hash_block_size=0                  | 36 | block size 0",
        "UCMTraceMeta: vllm_hash_block_size=secret             | 36 | block size that is no"
            + " integer",
      })
  void skipsABadUcmLineAndSaysWhere(String line, int column, String found) {
    checkBadLine(line, TraceFiles.UCM, column, found);
  }

  private void checkBadLine(String bad, String good, int column, String found) {
    String file = TraceFiles.write(directory, "a", good, bad, good);

    TraceReadReport report = new TraceReader().read(List.of(file), visitor);

    assertThat(visitor.requests).hasSize(2);
    assertThat(report.badLines()).isEqualTo(1);
    TraceProblem problem =
        report.problems().stream().filter(p -> p.line() == 2).findFirst().orElseThrow();
    assertThat(problem.found()).isEqualTo(found);
    if (column > 0) {
      assertThat(problem.column()).isEqualTo(column);
    }
    assertThat(problem.toString()).startsWith(file + ":2").doesNotContain("secret");
  }

  private ThrowableAssertAlternative<TraceException> assertFails(List<String> inputs) {
    TraceReader reader =
        new TraceReader(
            new ByteArrayInputStream(TraceFiles.MOONCAKE.getBytes(StandardCharsets.UTF_8)));
    return assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> reader.read(inputs, visitor))
        .satisfies(e -> assertThat(e.getMessage()).doesNotContain("secret").doesNotContain("\n"));
  }
}
