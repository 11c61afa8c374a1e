package ucm.lite.trace;

import java.util.List;

/**
 * What a {@link TraceReader} did.
 *
 * @param format the format of the records
 * @param inputs the files read, in that order, directories resolved; {@code standard input} for it
 * @param badLines lines skipped because they could not be understood
 * @param problems bad lines and warnings in the order read: all bad lines, and at most 100 warnings
 */
public record TraceReadReport(
    TraceFormat format, List<String> inputs, long badLines, List<TraceProblem> problems) {

  public TraceReadReport {
    inputs = List.copyOf(inputs);
    problems = List.copyOf(problems);
  }
}
