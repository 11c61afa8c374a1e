package ucm.lite.trace;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.ZipException;

/**
 * One reading in progress: takes the inputs one after the other, line by line, and keeps what holds
 * across them (format, block size, problems). Confined to one thread.
 *
 * <p>A line that is no record is a bad line in a JSON trace and nothing to mention in a log, which
 * is full of other lines. Until the first record of an input says which of the two it is, such
 * lines wait: one more than may be bad, which is enough to end the reading.
 */
final class TraceReading {
  private static final long PROGRESS_BYTES = 1 << 20;
  private static final long FEWEST_FOR_RATE = 100;

  private enum Kind {
    UNDECIDED,
    JSON,
    LOG
  }

  private final TraceReader options;
  private final TraceVisitor visitor;
  private final ProblemLog problems;
  private final BlockSize blockSize;
  private final JsonRecordParser json = new JsonRecordParser();
  private final UcmRecordParser ucm = new UcmRecordParser();
  private final RecordDraft draft = new RecordDraft();
  private final List<String> inputs = new ArrayList<>();
  private long requests;
  private double earliestMillis = Double.POSITIVE_INFINITY;
  private double latestMillis = Double.NEGATIVE_INFINITY;
  private long bytesBefore;
  private long bytesTotal;

  // Of the input at hand.
  private final List<TraceProblem> undecided = new ArrayList<>();
  private Kind kind = Kind.UNDECIDED;

  TraceReading(TraceReader options, TraceVisitor visitor) {
    this.options = options;
    this.visitor = visitor;
    this.problems = new ProblemLog(options.maxBadLines());
    this.blockSize = new BlockSize(options.blockTokens(), problems);
  }

  TraceReadReport read(List<TraceInput> all) {
    bytesTotal = TraceInput.size(all);
    visitor.progress(0, bytesTotal);
    all.forEach(this::read);
    return finish();
  }

  private void read(TraceInput input) {
    inputs.add(input.name());
    try (TraceInput.Stored stored = input.open(options.stdin());
        InputStream text = input.decode(stored)) {
      readLines(input, stored, new LineReader(text, options.maxLineBytes()));
    } catch (NoSuchFileException e) {
      throw new TraceException(input + " does not exist any more", e);
    } catch (AccessDeniedException e) {
      throw new TraceException(input + " may not be read by this user", e);
    } catch (EOFException e) {
      throw new TraceException(
          input + " ends in the middle of its gzip data, expected a complete .gz file", e);
    } catch (ZipException e) {
      throw new TraceException(input + " has damaged gzip data: " + e.getMessage(), e);
    } catch (IOException e) {
      throw new TraceException(input + " cannot be read: " + FileFault.of(e), e);
    }
  }

  private void readLines(TraceInput input, TraceInput.Stored stored, LineReader reader)
      throws IOException {
    long nextProgress = PROGRESS_BYTES;
    long before = requests;
    kind = Kind.UNDECIDED;
    undecided.clear();
    while (reader.next()) {
      try {
        line(input.name(), reader);
      } catch (BadLineException e) {
        problems.badLine(e.at(input.name(), reader.number()));
      }
      if (stored.count() >= nextProgress) {
        visitor.progress(bytesBefore + stored.count(), bytesTotal);
        nextProgress = stored.count() + PROGRESS_BYTES;
      }
    }
    bytesBefore += stored.count();
    visitor.progress(bytesBefore, bytesTotal);
    if (requests == before) {
      withoutRecord(input, reader.number());
    }
  }

  private void line(String input, LineReader reader) throws BadLineException {
    if (reader.tooLong()) {
      throw new BadLineException(
          0,
          "a line longer than " + options.maxLineBytes() + " bytes",
          "a shorter one, or a higher limit");
    }
    byte[] bytes = reader.bytes();
    int end = reader.length();
    while (end > 0 && isBlank(bytes[end - 1])) {
      end--;
    }
    int first = 0;
    while (first < end && isBlank(bytes[first])) {
      first++;
    }
    if (first == end) {
      return;
    }
    if (bytes[first] == '{') {
      jsonLine(bytes, end, input, reader.number());
    } else {
      textLine(bytes, end, input, reader.number());
    }
  }

  private void jsonLine(byte[] bytes, int end, String input, long number) {
    try {
      json.parse(bytes, end, draft);
    } catch (BadLineException e) {
      noRecord(e.at(input, number));
      return;
    }
    decide(Kind.JSON);
    deliver(input, number);
  }

  private void textLine(byte[] bytes, int end, String input, long number) throws BadLineException {
    switch (ucm.begin(bytes, end)) {
      case RECORD -> {
        ucm.parse(draft);
        decide(Kind.LOG);
        deliver(input, number);
      }
      case META -> {
        int blockTokens = ucm.blockTokens();
        decide(Kind.LOG);
        blockSize.announce(blockTokens, input, number);
      }
      case OTHER ->
          noRecord(
              new BadLineException(
                      1,
                      "a line of " + TraceProblem.plural(end, "byte") + " that is no trace record",
                      "a JSON object or a UCM trace line")
                  .at(input, number));
    }
  }

  private void noRecord(TraceProblem problem) {
    if (kind == Kind.JSON) {
      problems.badLine(problem);
    } else if (kind == Kind.UNDECIDED && undecided.size() <= options.maxBadLines()) {
      undecided.add(problem);
    }
  }

  /** Says what the input is; the first word stands, as two formats end the reading elsewhere. */
  private void decide(Kind seen) {
    if (kind == Kind.UNDECIDED) {
      kind = seen;
      if (seen == Kind.JSON) {
        undecided.forEach(problems::badLine);
      }
      undecided.clear();
    }
  }

  private void deliver(String input, long number) {
    int blockTokens = blockSize.admit(draft, input, number);
    requests++;
    earliestMillis = Math.min(earliestMillis, draft.timestampMillis);
    latestMillis = Math.max(latestMillis, draft.timestampMillis);
    visitor.request(draft.toRequest(blockTokens));
  }

  private void withoutRecord(TraceInput input, long inputLines) {
    String found =
        inputLines == 0
            ? "an empty input"
            : "no trace record in " + TraceProblem.plural(inputLines, "line");
    String expected = "Mooncake or Qwen-Bailian JSON lines, or UCM trace lines";
    if (input.fromDirectory()) {
      problems.warning(input.name(), 0, found, expected);
      return;
    }
    throw nothingRead(input + ": found " + found + ", expected " + expected, undecided);
  }

  private TraceException nothingRead(String message, List<TraceProblem> waiting) {
    return new TraceException(
        Stream.concat(problems.kept().stream(), waiting.stream())
            .findFirst()
            .map(first -> message + "; the first bad line: " + first)
            .orElse(message));
  }

  private TraceReadReport finish() {
    if (requests == 0) {
      throw nothingRead("found no trace record in " + String.join(", ", inputs), List.of());
    }
    blockSize.check();
    warnOfSeconds();
    return new TraceReadReport(blockSize.format(), inputs, problems.badLines(), problems.kept());
  }

  /** Mooncake's times are milliseconds; other tools write its lines with seconds. */
  private void warnOfSeconds() {
    double spanMillis = latestMillis - earliestMillis;
    if (blockSize.format() == TraceFormat.MOONCAKE
        && requests >= FEWEST_FOR_RATE
        && spanMillis > 0
        && requests > spanMillis) {
      problems.warning(
          inputs.getFirst(),
          0,
          "%s requests in %.0f ms, more than one a millisecond".formatted(requests, spanMillis),
          "milliseconds: if its times are seconds, multiply them by 1,000");
    }
  }

  private static boolean isBlank(byte b) {
    return b == ' ' || b == '\t' || b == '\r';
  }
}
