package ucm.lite.trace;

import java.util.ArrayList;
import java.util.List;

/**
 * The lines of one input that are no record, until it is known whether the input is a log, where
 * they are normal, or a JSON trace, where they are bad. Keeps one line more than may be bad: enough
 * to end the reading.
 */
final class UndecidedLines {
  private final ProblemLog problems;
  private final int maxKept;
  private final List<TraceProblem> waiting = new ArrayList<>();
  private boolean decided;
  private boolean log;
  private boolean sawRecord;

  UndecidedLines(ProblemLog problems, int maxBadLines) {
    this.problems = problems;
    this.maxKept = maxBadLines == Integer.MAX_VALUE ? maxBadLines : maxBadLines + 1;
  }

  /** Adds a line that is no record. */
  void add(TraceProblem problem) {
    if (!decided) {
      if (waiting.size() < maxKept) {
        waiting.add(problem);
      }
    } else if (!log) {
      problems.badLine(problem);
    }
  }

  /** Says what the input is; the first word stands, as two formats end the reading elsewhere. */
  void decide(boolean isLog) {
    if (decided) {
      return;
    }
    decided = true;
    log = isLog;
    if (!isLog) {
      waiting.forEach(problems::badLine);
    }
    waiting.clear();
  }

  /** Notes that the input has a record. */
  void record() {
    sawRecord = true;
  }

  boolean sawRecord() {
    return sawRecord;
  }

  /** The lines that still wait. */
  List<TraceProblem> first() {
    return waiting;
  }
}
