import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * What the tests of a build came to, from the reports of Surefire and Failsafe: a line for each module, the
 * reason of each skip, and the sum. {@code java tools/build/Summary.java FOLDER [NOT_BEFORE]}; run by
 * {@code ucm-dist} as the last thing of {@code mvn verify}.
 */
final class Summary {

  private static final class Counts {
    int tests;
    int failures;
    int errors;
    int skipped;
    double seconds;

    void add(Element suite) {
      tests += number(suite, "tests");
      failures += number(suite, "failures");
      errors += number(suite, "errors");
      skipped += number(suite, "skipped");
      seconds += Double.parseDouble(suite.getAttribute("time").replace(",", ""));
    }

    void add(Counts other) {
      tests += other.tests;
      failures += other.failures;
      errors += other.errors;
      skipped += other.skipped;
      seconds += other.seconds;
    }

    private static int number(Element suite, String name) {
      return Integer.parseInt(suite.getAttribute(name));
    }

    @Override
    public String toString() {
      return "Tests run: %d, Failures: %d, Errors: %d, Skipped: %d"
          .formatted(tests, failures, errors, skipped);
    }
  }

  private static final int NAMED = 3;

  private Summary() {}

  public static void main(String[] arguments) throws Exception {
    Path root = Path.of(arguments[0]);
    long notBefore =
        arguments.length > 1 ? OffsetDateTime.parse(arguments[1]).toInstant().toEpochMilli() : 0;
    Map<String, Counts> modules = new TreeMap<>();
    // Classes, as often as they give it.
    Map<String, List<String>> reasons = new LinkedHashMap<>();
    for (Path report : reports(root, notBefore)) {
      Element suite =
          DocumentBuilderFactory.newInstance()
              .newDocumentBuilder()
              .parse(report.toFile())
              .getDocumentElement();
      Path module = root.relativize(report).getParent().getParent().getParent();
      modules.computeIfAbsent(module.toString(), fresh -> new Counts()).add(suite);
      NodeList cases = suite.getElementsByTagName("testcase");
      for (int i = 0; i < cases.getLength(); i++) {
        Element test = (Element) cases.item(i);
        NodeList skips = test.getElementsByTagName("skipped");
        if (skips.getLength() > 0) {
          String text = reason((Element) skips.item(0));
          String name = suite.getAttribute("name").replaceAll(".*\\.", "");
          reasons.computeIfAbsent(text, fresh -> new ArrayList<>()).add(name);
        }
      }
    }
    Counts all = new Counts();
    modules.forEach(
        (name, counts) -> {
          System.out.printf("%-30s %s, %.0f s%n", name, counts, counts.seconds);
          all.add(counts);
        });
    System.out.printf("Skipped, and why (%d):%n", all.skipped);
    reasons.forEach((reason, classes) -> System.out.printf("  %s (%s)%n", reason, whose(classes)));
    System.out.println("Full logs: */target/surefire-reports, */target/failsafe-reports");
    System.out.println(all);
  }

  /** A few of the classes by name, and how many tests there are. */
  private static String whose(List<String> classes) {
    List<String> names = classes.stream().distinct().toList();
    String some = String.join(", ", names.subList(0, Math.min(names.size(), NAMED)));
    String more = names.size() > NAMED ? " and " + (names.size() - NAMED) + " others" : "";
    return some + more + (classes.size() > 1 ? "; " + classes.size() + " tests" : "");
  }

  /** What an annotation or a failed assumption says. */
  private static String reason(Element skipped) {
    String message = skipped.getAttribute("message").strip();
    if (message.isEmpty()) {
      message = skipped.getTextContent().strip().lines().findFirst().orElse("");
      message = message.replaceFirst("^.*TestAbortedException: (Assumption failed: )?", "");
    }
    return message.isEmpty() ? "no reason given" : message;
  }

  private static List<Path> reports(Path root, long notBefore) throws IOException {
    try (Stream<Path> files = Files.walk(root, 5)) {
      return files
          .filter(file -> file.getFileName().toString().matches("TEST-.*\\.xml"))
          .filter(file -> file.getParent().getFileName().toString().endsWith("-reports"))
          .filter(file -> modified(file) >= notBefore)
          .sorted()
          .toList();
    }
  }

  private static long modified(Path file) {
    try {
      return Files.getLastModifiedTime(file).toMillis();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
