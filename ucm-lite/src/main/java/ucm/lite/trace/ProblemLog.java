package ucm.lite.trace;

import java.util.ArrayList;
import java.util.List;

/** The problems of one reading: all bad lines, whose number is bounded, and the first warnings. */
final class ProblemLog {
  private static final int MAX_WARNINGS_KEPT = 100;

  private final int maxBadLines;
  private final List<TraceProblem> kept = new ArrayList<>();
  private long badLines;
  private long warnings;

  ProblemLog(int maxBadLines) {
    this.maxBadLines = maxBadLines;
  }

  /** Adds a bad line; throws when there are more than allowed. */
  void badLine(TraceProblem problem) {
    badLines++;
    kept.add(problem);
    if (badLines > maxBadLines) {
      throw new TraceException(
          "stopped at %s:%s: more than %s; the last one: %s"
              .formatted(
                  problem.input(),
                  problem.line(),
                  TraceProblem.plural(maxBadLines, "bad line"),
                  problem));
    }
  }

  void warning(String input, long line, String found, String expected) {
    if (warnings++ < MAX_WARNINGS_KEPT) {
      kept.add(new TraceProblem(input, line, 0, found, expected));
    }
  }

  long badLines() {
    return badLines;
  }

  List<TraceProblem> kept() {
    return kept;
  }
}
