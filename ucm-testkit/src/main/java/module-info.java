/**
 * For authors of stores: the contract suite that every store passes, and simulated parts to test against.
 *
 * <p>A store's test extends {@link ucm.testkit.StoreContract}. {@link ucm.testkit.fault.MemoryStore} is a
 * plain correct store, {@link ucm.testkit.fault.FaultyStore} makes one fail on demand, {@link
 * ucm.testkit.BlockBytes} says what a block's bytes are. A store is opened with a {@link
 * ucm.testkit.TestContext}. {@link ucm.testkit.fault.SimulatedLibrary} takes the place of a native library.
 */
@org.jspecify.annotations.NullMarked
module ucm.testkit {
  requires static transitive org.jspecify;
  requires transitive org.assertj.core;
  requires transitive org.junit.jupiter.api;
  requires transitive org.junit.jupiter.params;
  requires transitive ucm.api;

  exports ucm.testkit;
  exports ucm.testkit.fault;

  // The suite's test methods are inherited from classes that are not public.
  opens ucm.testkit to
      org.junit.platform.commons;
}
