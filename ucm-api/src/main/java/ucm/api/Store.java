package ucm.api;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * Keeps KV-cache blocks, or moves them on to a store that does.
 *
 * <p>A store is one stage of a pipeline. The stage above it (or the engine, for the first
 * stage) calls it; the next stage, if any, is {@link StoreContext#next}. What only some stores can
 * do is an interface beside this one: {@link IndexLookup}, {@link MemoryProvider}.
 *
 * <p>An implementation <strong>must</strong>
 *
 * <ul>
 *   <li>be public, carry {@link StoreName}, and have a public constructor without parameters that
 *       does nothing;
 *   <li>live through {@code configure}, {@code open}, use, {@code close} in this order and answer
 *       the wrong order with {@link IllegalStateException} ({@link StoreLife} does this);
 *   <li>never serve a wrong byte: a block that is incomplete, damaged or of another layout is a miss.
 *       A miss is always allowed, a wrong hit never;
 *   <li>not touch the memory of a transfer once its task has completed, whatever the outcome;
 *   <li>accept calls from any number of threads at once between {@code open} and {@code close};
 *   <li>leave nothing of a failed load or dump that later answers as a hit.
 * </ul>
 *
 * <p>It <strong>should</strong> bound all of its queues and refuse with {@link QueueFullException}
 * when one is full, name its threads {@code ucm-<stage>-<role>-<n>}, and sleep when there is nothing
 * to do.
 *
 * <p>What is not promised: a block once stored may disappear at any time (it was evicted, or another
 * process removed it), so an answer of a look-up is a hint about the near future and a load may still
 * miss. Nothing is said about the order in which shards of a transfer are moved.
 */
public interface Store extends AutoCloseable {

  /**
   * The name this store goes by in pipeline strings.
   *
   * @return the value of {@link StoreName}
   * @throws IllegalStateException when the class carries no such annotation
   */
  default String name() {
    return StoreLife.nameOf(getClass());
  }

  /**
   * Whether this store keeps the bytes of blocks. One that keeps metadata only, to count hits, says
   * no: its loads end well and move nothing, so the memory must not be used afterwards, and no stage
   * that hands bytes on may stand above it.
   */
  default boolean keepsBytes() {
    return true;
  }

  /**
   * The configuration keys this store reads. May be called in any state, also before {@code
   * configure}; has no side effect. Keys of {@link CommonKeys} that the store reads are part of the
   * list.
   */
  List<ConfigKey<?>> configKeys();

  /**
   * Values that this store suggests to the stages above it, by the name of a key. A stage that reads
   * such a key may take the value as its default ({@link StoreConfig#suggestion}); the value that the
   * user set comes first. May be called in any state; has no side effect.
   */
  default Map<String, Object> suggestions() {
    return Map.of();
  }

  /**
   * Parses and checks the configuration, and does nothing else: no file, thread or memory is touched.
   * Faults are recorded in {@code config} ({@link StoreConfig#reject}) rather than thrown, so that
   * the user sees all of them at once. A store whose configuration has an error is not opened.
   *
   * @throws IllegalStateException when called twice or after {@code open}
   */
  void configure(StoreConfig config);

  /**
   * Says why a stage cannot come after this one, so that a wrong order of stages is told before
   * anything is opened. Asked after {@code configure}, also of a store whose configuration has an error;
   * has no side effect. {@code open} refuses the same.
   *
   * @param next the next stage, configured and not open; null when this is the last one
   * @return why not, with what to do; empty when nothing speaks against it
   */
  default Optional<String> refuseNext(@Nullable Store next) {
    return Optional.empty();
  }

  /**
   * Acquires what the store needs. The next stage is open already. May block. When it throws, it has
   * released what it had acquired, and the store is closed.
   *
   * @throws StoreException when the store cannot work, with what was asked, what was found, where and
   *     what to do
   * @throws IllegalStateException when not configured, or opened before
   */
  void open(StoreContext context);

  /**
   * Says which blocks are here, or in a lower stage, whole and ready to be loaded.
   *
   * <p>Blocks at most for as long as the volume takes to answer, bounded by {@code timeout_ms}; what
   * did not answer in time counts as absent. Never throws because of an I/O fault: a store that is
   * down answers that it has nothing.
   *
   * @param ids any ids, in any order, repetitions allowed
   * @return a fresh set that the caller owns; bit i is set when block i is present with all its
   *     shards
   * @throws StoreClosedException when the store is closed
   */
  BitSet lookup(BlockIds ids);

  /**
   * Says how far an unbroken run of present blocks reaches from the first one. The question an engine
   * asks for a prompt; an implementation should stop at the first miss. The default asks {@link
   * #lookup} for some at a time.
   *
   * @param ids the ids of one prompt, root first
   * @return the index (inclusive) of the last block of the run, or -1 when the first is absent or
   *     {@code ids} is empty
   * @throws StoreClosedException when the store is closed
   */
  default int lookupPrefix(BlockIds ids) {
    int step = 64;
    int run = 0;
    int end;
    do {
      end = Math.min(run + step, ids.size());
      run += lookup(ids.slice(run, end)).nextClearBit(0);
    } while (run == end && end < ids.size());
    return run - 1;
  }

  /**
   * Hints that these blocks will be loaded soon. Never blocks, may be ignored, has no result. The
   * default ignores it; its {@link #lookup} of no ids answers a store that is not open.
   *
   * @throws StoreClosedException when the store is closed
   */
  default void prefetch(BlockIds ids) {
    lookup(BlockIds.empty());
  }

  /**
   * Hints that these are the blocks of one prompt, of which an engine is about to look up, load or dump
   * some. A later block is of no use without those before it, so a store that removes what was used
   * longest ago keeps a block at least as long as those that come after it. Never blocks, may be ignored,
   * has no result. A stage hands it on; the default ignores it, and its {@link #lookup} of no ids answers a
   * store that is not open.
   *
   * @param ids all blocks of the prompt, root first, whether they are here or not
   * @throws StoreClosedException when the store is closed
   */
  default void notePrompt(BlockIds ids) {
    lookup(BlockIds.empty());
  }

  /**
   * Starts to move shards from the store into memory. Returns at once.
   *
   * <p>A shard that is not there any more, or is damaged, ends as {@link ShardOutcome#MISSING} or
   * {@link ShardOutcome#CORRUPT}; that is no fault of the store. The bytes of a shard that did not
   * end as {@link ShardOutcome#OK} are undefined. A transfer of no shards has completed at once.
   *
   * @param transfer what goes where; the caller keeps its memory alive until the task has completed
   * @throws QueueFullException when the store has as much to do as its bounds allow; nothing was
   *     started
   * @throws StoreException when the transfer does not fit the store's layout, or the store has the
   *     scheduler role ({@code device_id: -1}) and moves no data
   * @throws StoreClosedException when the store is closed
   */
  Task load(Transfer transfer);

  /**
   * Starts to move shards from memory into the store. Returns at once.
   *
   * <p>Shards of one block may come in several transfers and in any order; the block becomes visible
   * to look-ups only when all its shards are there. Dumping a block that the store knows to be there
   * moves nothing and succeeds; one that another process has stored meanwhile may be moved, but is not
   * stored a second time. Blocks of one prompt should be named root first.
   *
   * <p>The task has completed when the bytes have <em>left the memory</em>, which the caller may then
   * reuse. Whether a block has become <em>durable</em> is another question, asked of {@link #flush}
   * and {@link #durable}; nor is it promised that a look-up finds the block before a flush.
   *
   * @param transfer what comes from where; the caller keeps its memory alive, and does not write to
   *     it, until the task has completed
   * @throws QueueFullException when the store has as much to do as its bounds allow; nothing was
   *     started
   * @throws StoreException as for {@link #load}
   * @throws StoreClosedException when the store is closed
   */
  Task dump(Transfer transfer);

  /**
   * Waits until every dump accepted before this call has become durable in the last stage or has
   * failed.
   *
   * <p>Durable means what the last stage is configured for ({@code durability}); a store that keeps
   * blocks in memory only has nothing that can become durable, and says so in its documentation. A
   * block of which some shards were never dumped is reported as pending until its store gives it up.
   *
   * @param timeout how long to wait at the most; zero asks without waiting
   * @return what is still pending and what has failed since the last flush; failures are reported
   *     once
   * @throws InterruptedException when the thread is interrupted while waiting
   * @throws StoreClosedException when the store is closed
   */
  FlushResult flush(Duration timeout) throws InterruptedException;

  /**
   * Whether so many bytes more would be kept, beside those that dumps have brought already: nothing of them
   * is refused for want of space, and no fault of the volume is known that would. A caller that wants to go on
   * before a dump has {@linkplain Task#whenSettled settled} asks this when it has completed. Others may take
   * the room meanwhile, so a store errs on the side of false. Never blocks. The default knows nothing of its
   * room.
   *
   * @param bytes of blocks; 0 is for those that dumps have brought
   * @return false when there is no room, or it is not known
   * @throws StoreClosedException when the store is closed
   */
  default boolean hasRoom(long bytes) {
    lookup(BlockIds.empty());
    return false;
  }

  /**
   * Says which blocks are durable in the last stage. By default none is; a stage above another one
   * asks that, and a store that keeps blocks beyond its process says which.
   *
   * @return a fresh set that the caller owns; bit i is set when block i would be found after a
   *     restart of this process
   * @throws StoreClosedException when the store is closed
   */
  default BitSet durable(BlockIds ids) {
    return lookup(BlockIds.empty());
  }

  /**
   * Whether {@link #remove} works. Asked of an open store; the lower stages are taken into account.
   */
  default boolean canRemove() {
    return false;
  }

  /**
   * Removes blocks, here and in the lower stages. Optional: a store that does it says so by {@link
   * #canRemove}.
   *
   * <p>Blocks until it is done, bounded by {@code timeout_ms}. A look-up that begins afterwards does not
   * find a removed block unless it was dumped again. A dump that is under way may still bring its block:
   * {@link #flush} first. What other processes hold in memory of their own stays until they drop it.
   *
   * @param ids any ids, in any order, repetitions allowed
   * @return a fresh set that the caller owns; bit i is set when block i is gone, also when it was not
   *     there before, and clear when it could not be removed
   * @throws UnsupportedOperationException when the store cannot remove blocks
   * @throws StoreClosedException when the store is closed
   */
  default BitSet remove(BlockIds ids) {
    throw new UnsupportedOperationException(
        "store " + name() + " cannot remove blocks: it implements no Store.remove");
  }

  /**
   * Ends what is under way, within the store's deadline, and releases everything. Waits for background
   * writes; logs what it had to drop. Idempotent; a second caller waits for the first. The store
   * above is closed already, the next stage is still open and is closed by its opener.
   *
   * <p>A thread that is interrupted closes all the same, as no later call would, and stays
   * interrupted; a store may then drop what it would have waited for.
   */
  @Override
  void close();
}
