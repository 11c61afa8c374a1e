package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import ucm.cli.Main;

/**
 * Commands within the sentences of README.md and docs/: they, and the options beside them, are there. Those in blocks
 * of their own are run by {@link DocsCommandsIT}.
 */
class DocsMentionsTest {

  private static final Pattern MENTION = Pattern.compile("`(?:\\./|bin/)?ucm\\s+([a-z-][^`]*)`");
  private static final Pattern OPTION = Pattern.compile("--[a-z-]+");
  private static final int AT_LEAST = 40;

  private final Map<String, String> helps = new HashMap<>();

  @Test
  void commandsAndOptionsInSentencesExist() throws IOException {
    List<String> pages = new ArrayList<>(List.of("../README.md"));
    try (Stream<Path> files = Files.list(Path.of("../docs"))) {
      files.map(Path::toString).filter(name -> name.endsWith(".md")).forEach(pages::add);
    }
    int mentions = 0;
    for (String page : pages) {
      String text = Files.readString(Path.of(page)).replaceAll("(?ms)^```.*?^```$", "");
      for (MatchResult mention : MENTION.matcher(text).results().toList()) {
        mentions++;
        String help = helpOf(mention.group(1).split("[\\s,]+"));
        for (MatchResult option : OPTION.matcher(mention.group(1)).results().toList()) {
          assertThat(help).as("%s: %s", page, mention.group()).contains(option.group());
        }
      }
    }
    assertThat(mentions).isGreaterThan(AT_LEAST);
  }

  /** The help of the command that the first word names, or the first two; of ucm itself before an option. */
  private String helpOf(String[] words) {
    if (words[0].startsWith("-")) {
      return help();
    }
    String help = help(words[0]);
    boolean two = help.contains("\nCommands:") && words.length > 1 && !words[1].startsWith("-");
    return two ? help(words[0], words[1]) : help;
  }

  private String help(String... command) {
    return helps.computeIfAbsent(
        String.join(" ", command),
        name -> {
          StringWriter out = new StringWriter();
          String[] args =
              Stream.concat(Arrays.stream(command), Stream.of("--help")).toArray(String[]::new);
          int exitCode = Main.run(new PrintWriter(out), new PrintWriter(out), args);
          assertThat(exitCode).as("ucm %s%n%s", name, out).isZero();
          assertThat(out.toString()).contains("Usage: ucm " + name);
          return out.toString();
        });
  }
}
