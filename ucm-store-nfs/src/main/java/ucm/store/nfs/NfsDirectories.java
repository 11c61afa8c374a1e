package ucm.store.nfs;

import java.util.List;
import java.util.function.Consumer;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoredBlock;

/** Directories of a store of files, with the names of the files there; see {@link NfsTree}. */
record NfsDirectories(StoreDirectories inner) implements StoreDirectories {

  @Override
  public List<DirectorySummary> summarize(Observer observer) {
    return inner.summarize(observer);
  }

  @Override
  public void list(Observer observer, Consumer<StoredBlock> visitor) {
    inner.list(observer, visitor);
  }

  @Override
  public VerifyResult verify(VerifyPlan plan, Observer observer, Consumer<Damage> found) {
    return inner.verify(plan, observer, withRealNames(found));
  }

  @Override
  public AdoptResult adopt(AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    return inner.adopt(plan, observer, withRealNames(failed));
  }

  private static Consumer<Damage> withRealNames(Consumer<Damage> found) {
    return damage ->
        found.accept(
            new Damage(
                NfsTree.realName(damage.path()),
                damage.reason(),
                damage.isDamaged(),
                damage.isMoved()));
  }

  @Override
  public boolean hasOwnLimit() {
    return inner.hasOwnLimit();
  }

  @Override
  public CollectResult collect(CollectPlan plan, Observer observer) {
    return inner.collect(plan, observer);
  }
}
