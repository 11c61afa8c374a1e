package ucm.pipeline.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.TreeMap;
import java.util.stream.Stream;
import ucm.api.StoreException;
import ucm.pipeline.catalog.Discovery.Found;
import ucm.pipeline.hash.BlockHashing;

/**
 * The ways of naming blocks that were found, by name. One is made when it is asked for; those that
 * carry no name are made, and asked for it, when a name is asked for that no other has. Of several with
 * one name the first counts, as the built-in ones come first. Thread-safe.
 */
final class BlockHashings {

  // All guarded by this.
  private final Map<String, Found<BlockHashing>> named = new TreeMap<>();
  private final List<Found<BlockHashing>> unnamed = new ArrayList<>();
  private final List<CatalogProblem> problems = new ArrayList<>();

  BlockHashings(List<Found<BlockHashing>> all) {
    for (Found<BlockHashing> found : all) {
      if (found.name().isEmpty()) {
        unnamed.add(found);
      } else {
        add(found);
      }
    }
  }

  private void add(Found<BlockHashing> found) {
    Found<BlockHashing> earlier = named.putIfAbsent(found.name(), found);
    if (earlier != null) {
      refuse(
          found,
          "the block hasher %s is not used, as there is one of this name in %s; rename or remove one"
              .formatted(found.name(), earlier.location()));
    }
  }

  /**
   * Makes the one of this name, if there is one.
   *
   * @throws StoreException when it cannot be made
   */
  synchronized Optional<BlockHashing> find(String name) {
    if (!named.containsKey(name)) {
      unnamed.forEach(this::askForName);
      unnamed.clear();
    }
    Found<BlockHashing> found = named.get(name);
    if (found == null) {
      return Optional.empty();
    }
    try {
      return Optional.of(make(found));
    } catch (RuntimeException | ServiceConfigurationError | LinkageError e) {
      throw new StoreException(
          "the block hasher %s in %s cannot be made: %s"
              .formatted(name, found.location(), BoundedCall.reason(e)),
          e);
    }
  }

  private static BlockHashing make(Found<BlockHashing> found) {
    return BoundedCall.run(
        "the block hasher " + found.where(), Objects.requireNonNull(found.factory()));
  }

  private void askForName(Found<BlockHashing> found) {
    try {
      BlockHashing made = make(found);
      String name = BoundedCall.run("name() of the block hasher " + found.where(), made::name);
      if (name == null || name.isBlank()) {
        refuse(found, "the block hasher has no name: carry @BlockHashingName");
      } else {
        add(new Found<>(found.entry().named(name), true, found.className(), () -> made));
      }
    } catch (RuntimeException | ServiceConfigurationError | LinkageError e) {
      refuse(found, "the block hasher cannot be made: " + BoundedCall.reason(e));
    }
  }

  private void refuse(Found<BlockHashing> found, String problem) {
    problems.add(new CatalogProblem(found.location(), found.className(), problem));
  }

  /** The names, sorted; of those that were not asked yet the classes, in brackets, after them. */
  synchronized List<String> names() {
    return Stream.concat(
            named.keySet().stream(),
            unnamed.stream().map(found -> "(" + found.className() + ")").sorted())
        .toList();
  }

  synchronized List<CatalogProblem> problems() {
    return List.copyOf(problems);
  }
}
