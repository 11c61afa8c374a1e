/** The stores {@code Fake} (metadata only) and {@code Empty}. */
@org.jspecify.annotations.NullMarked
module ucm.store.fake {
  requires static org.jspecify;
  requires ucm.api;
  requires ucm.platform;

  provides ucm.api.Store with
      ucm.store.fake.FakeStore,
      ucm.store.fake.EmptyStore;
}
