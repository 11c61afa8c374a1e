package ucm.image;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A fenced block of a page of the documentation.
 *
 * <p>The line before it may be a comment, which no reader sees, for the test that follows the page:
 * {@code <!-- run: A; B -->}, where each of A and B is one of
 *
 * <ul>
 *   <li>{@code file NAME}: the block is the content of that file
 *   <li>{@code part of PATH}: the block is a part of that file of the repository
 *   <li>{@code exit N}: its commands end with N and not with 0
 *   <li>{@code OLD => NEW}: the test takes NEW, which takes less time or memory
 * </ul>
 *
 * @param page path from the root of the repository
 * @param line where the block begins, from 1
 * @param section the last heading before it
 * @param language {@code sh}: each line is a command; {@code console}: those after a prompt are
 * @param instructions those of the comment
 */
record DocsBlock(
    String page,
    int line,
    String section,
    String language,
    String text,
    List<String> instructions) {

  private static final Path ROOT = Path.of("..");
  private static final Pattern COMMENT = Pattern.compile("<!-- run: (.*) -->");
  private static final Pattern PROMPT = Pattern.compile("(?:node\\d)?\\$ (.*)");

  /** The blocks of a page, in its order. */
  static List<DocsBlock> of(String page) throws IOException {
    List<DocsBlock> blocks = new ArrayList<>();
    List<String> lines = Files.readAllLines(ROOT.resolve(page));
    String section = "";
    for (int i = 0; i < lines.size(); i++) {
      if (lines.get(i).startsWith("#")) {
        section = lines.get(i).replaceFirst("#+ ", "");
      }
      if (!lines.get(i).startsWith("```")) {
        continue;
      }
      int begin = i;
      StringBuilder text = new StringBuilder();
      while (!lines.get(++i).equals("```")) {
        text.append(lines.get(i)).append('\n');
      }
      Matcher comment = COMMENT.matcher(begin == 0 ? "" : lines.get(begin - 1));
      blocks.add(
          new DocsBlock(
              page,
              begin + 1,
              section,
              lines.get(begin).substring(3),
              text.toString(),
              comment.matches() ? List.of(comment.group(1).split("; ")) : List.of()));
    }
    return blocks;
  }

  /** Its commands as they are printed, without the comments after them. */
  List<String> commands() {
    return switch (language) {
      case "sh" -> text.lines().map(DocsBlock::withoutComment).toList();
      case "console" ->
          text.lines()
              .map(PROMPT::matcher)
              .filter(Matcher::matches)
              .map(prompt -> withoutComment(prompt.group(1)))
              .toList();
      default -> List.of();
    };
  }

  private static String withoutComment(String command) {
    return command.replaceFirst("\\s+# .*", "");
  }

  /** Whether it looks like commands, although its language does not say so. */
  boolean looksLikeCommands() {
    return commands().isEmpty()
        && text.lines().anyMatch(line -> line.matches("(\\$ |\\./ucm |(bin/)?ucm |mvn ).*"));
  }

  /** Some text of it with NEW for OLD; each OLD must be in the block. */
  String shortened(String some) {
    String result = some;
    for (String instruction : instructions) {
      String[] sides = instruction.split(" => ", 2);
      if (sides.length == 2) {
        if (!text.contains(sides[0])) {
          throw new AssertionError(this + " does not have " + sides[0]);
        }
        result = result.replace(sides[0], sides[1]);
      }
    }
    return result;
  }

  /** What follows a word that instructions begin with. */
  Optional<String> told(String word) {
    return instructions.stream()
        .filter(instruction -> instruction.startsWith(word + " "))
        .map(instruction -> instruction.substring(word.length() + 1))
        .findFirst();
  }

  /** Whether the file, which may indent it, has these lines. */
  boolean isPartOf(Path file) throws IOException {
    return trimmed(Files.readString(file)).contains(trimmed(text));
  }

  private static String trimmed(String text) {
    return text.lines()
        .map(String::strip)
        .filter(line -> !line.isEmpty())
        .collect(Collectors.joining("\n"));
  }

  @Override
  public String toString() {
    return page + ":" + line;
  }
}
