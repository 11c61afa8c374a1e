package ucm.lite.trace;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.ZipException;

/**
 * One reading in progress: takes the inputs one after the other, line by line, and keeps what holds
 * across them (format, block size, problems). Confined to one thread.
 *
 * <p>A line that is no record is a bad line in a JSON trace and nothing to mention in a log, which
 * is full of other lines. Until the first record of an input says which of the two it is, such
 * lines wait in {@link UndecidedLines}.
 */
final class TraceReading {
  private static final long PROGRESS_BYTES = 1 << 20;

  private final TraceReaderOptions options;
  private final InputStream stdin;
  private final TraceVisitor visitor;
  private final ProblemLog problems;
  private final BlockSize blockSize;
  private final JsonRecordParser json = new JsonRecordParser();
  private final UcmRecordParser ucm = new UcmRecordParser();
  private final RecordDraft draft = new RecordDraft();
  private final List<String> inputs = new ArrayList<>();
  private long lines;
  private long requests;

  TraceReading(TraceReaderOptions options, InputStream stdin, TraceVisitor visitor) {
    this.options = options;
    this.stdin = stdin;
    this.visitor = visitor;
    this.problems = new ProblemLog(options.maxBadLines(), visitor);
    this.blockSize = new BlockSize(options.blockTokens(), problems);
  }

  void read(TraceInput input) {
    inputs.add(input.name());
    try (CountingInputStream stored = input.open(stdin);
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

  private void readLines(TraceInput input, CountingInputStream stored, LineReader reader)
      throws IOException {
    long size = input.size();
    long nextProgress = PROGRESS_BYTES;
    UndecidedLines undecided = new UndecidedLines(problems, options.maxBadLines());
    while (reader.next()) {
      line(input.name(), reader, undecided);
      if (stored.count() >= nextProgress) {
        visitor.progress(input.name(), stored.count(), size);
        nextProgress = stored.count() + PROGRESS_BYTES;
      }
    }
    lines += reader.number();
    visitor.progress(input.name(), stored.count(), size);
    if (!undecided.sawRecord()) {
      withoutRecord(input, reader.number(), undecided);
    }
  }

  private void line(String input, LineReader reader, UndecidedLines undecided) {
    long number = reader.number();
    if (reader.tooLong()) {
      problems.badLine(
          new BadLineException(
                  0,
                  "a line longer than " + options.maxLineBytes() + " bytes",
                  "a shorter one, or a higher limit")
              .at(input, number));
      return;
    }
    byte[] bytes = reader.buffer();
    int start = reader.start();
    int end = reader.end();
    while (start < end && isBlank(bytes[end - 1])) {
      end--;
    }
    int first = start;
    while (first < end && isBlank(bytes[first])) {
      first++;
    }
    if (first == end) {
      return;
    }
    try {
      if (bytes[first] == '{') {
        jsonLine(bytes, start, end, input, number, undecided);
      } else {
        textLine(bytes, start, end, input, number, undecided);
      }
    } catch (BadLineException e) {
      problems.badLine(e.at(input, number));
    }
  }

  private void jsonLine(
      byte[] bytes, int start, int end, String input, long number, UndecidedLines undecided) {
    try {
      json.parse(bytes, start, end, draft);
    } catch (BadLineException e) {
      undecided.add(e.at(input, number));
      return;
    }
    undecided.decide(/* isLog= */ false);
    deliver(input, number);
    undecided.record();
  }

  private void textLine(
      byte[] bytes, int start, int end, String input, long number, UndecidedLines undecided)
      throws BadLineException {
    switch (UcmRecordParser.kindOf(bytes, start, end)) {
      case RECORD -> {
        ucm.parse(bytes, start, end, draft);
        undecided.decide(/* isLog= */ true);
        deliver(input, number);
        undecided.record();
      }
      case META -> {
        int blockTokens = ucm.blockTokens(bytes, start, end);
        undecided.decide(/* isLog= */ true);
        blockSize.announce(blockTokens, input, number);
      }
      case OTHER ->
          undecided.add(
              new BadLineException(
                      1,
                      "a line of " + Plural.of(end - start, "byte") + " that is no trace record",
                      "a JSON object or a UCM trace line")
                  .at(input, number));
    }
  }

  private void deliver(String input, long number) {
    int blockTokens = blockSize.admit(draft, input, number);
    requests++;
    visitor.request(draft.toRequest(blockTokens));
  }

  private void withoutRecord(TraceInput input, long inputLines, UndecidedLines undecided) {
    String found =
        inputLines == 0 ? "an empty input" : "no trace record in " + Plural.of(inputLines, "line");
    String expected = "Mooncake or Qwen-Bailian JSON lines, or UCM trace lines";
    if (input.fromDirectory()) {
      problems.warning(input.name(), 0, found, expected);
      return;
    }
    throw nothingRead(input + ": found " + found + ", expected " + expected, undecided.first());
  }

  private TraceException nothingRead(String message, List<TraceProblem> undecided) {
    List<TraceProblem> all = new ArrayList<>(problems.kept());
    all.addAll(undecided);
    return new TraceException(
        all.isEmpty() ? message : message + "; the first bad line: " + all.getFirst(), all);
  }

  TraceReadReport finish() {
    if (requests == 0) {
      throw nothingRead("found no trace record in " + String.join(", ", inputs), List.of());
    }
    return new TraceReadReport(
        blockSize.format(),
        inputs,
        lines,
        requests,
        problems.badLines(),
        problems.warnings(),
        problems.kept());
  }

  private static boolean isBlank(byte b) {
    return b == ' ' || b == '\t' || b == '\r';
  }
}
