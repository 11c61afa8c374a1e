package ucm.lite.trace;

import java.util.ArrayList;
import java.util.List;

/**
 * Collects the problems of one reading. Every problem reaches the visitor; kept are all bad lines,
 * whose number is bounded, and the first warnings.
 */
final class ProblemLog {
  private static final int MAX_WARNINGS_KEPT = 100;

  private final int maxBadLines;
  private final TraceVisitor visitor;
  private final List<TraceProblem> kept = new ArrayList<>();
  private long badLines;
  private long warnings;

  ProblemLog(int maxBadLines, TraceVisitor visitor) {
    this.maxBadLines = maxBadLines;
    this.visitor = visitor;
  }

  /** Adds a bad line; throws when there are more than allowed. */
  void badLine(TraceProblem problem) {
    badLines++;
    kept.add(problem);
    visitor.problem(problem);
    if (badLines > maxBadLines) {
      throw new TraceException(
          "stopped at %s:%s: more than %s; the last one: %s"
              .formatted(
                  problem.input(),
                  problem.line(),
                  TraceProblem.plural(maxBadLines, "bad line"),
                  problem),
          kept);
    }
  }

  void warning(String input, long line, String found, String expected) {
    TraceProblem problem =
        new TraceProblem(TraceProblem.Severity.WARNING, input, line, 0, found, expected);
    if (warnings++ < MAX_WARNINGS_KEPT) {
      kept.add(problem);
    }
    visitor.problem(problem);
  }

  long badLines() {
    return badLines;
  }

  long warnings() {
    return warnings;
  }

  List<TraceProblem> kept() {
    return kept;
  }
}
