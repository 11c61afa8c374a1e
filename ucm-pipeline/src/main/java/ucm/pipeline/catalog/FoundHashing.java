package ucm.pipeline.catalog;

import java.util.function.Supplier;
import ucm.pipeline.hash.BlockHashing;

/**
 * A way of naming blocks that was found.
 *
 * @param name what {@code block_hasher} calls it; empty when only its code can say that
 * @param location where it was found, for people
 * @param className its class
 * @param factory makes one, by its code
 */
record FoundHashing(
    String name, String location, String className, Supplier<? extends BlockHashing> factory) {

  /** Makes one. */
  BlockHashing make() {
    return BoundedCall.run("the block hasher " + className + " in " + location, factory);
  }

  /** Asks it for its name. */
  FoundHashing asked() {
    BlockHashing made = make();
    String what = "name() of the block hasher " + className + " in " + location;
    return new FoundHashing(BoundedCall.run(what, made::name), location, className, () -> made);
  }
}
