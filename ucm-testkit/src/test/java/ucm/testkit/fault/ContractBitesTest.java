package ucm.testkit.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;
import ucm.api.Store;
import ucm.testkit.BrokenTasks;
import ucm.testkit.StoreContract;
import ucm.testkit.fault.MemoryStore.Volume;

/** The contract suite passes a correct store, so what it does to broken ones is what counts. */
final class ContractBitesTest {

  private static Arguments mutant(String caughtBy, Supplier<BrokenStore> store) {
    return Arguments.of(store.get().getClass().getSimpleName(), caughtBy, store);
  }

  static final Arguments[] MUTANTS = {
    mutant("findsEveryBlockButTheHole", BrokenLookups.PrefixLogic::new),
    mutant("saysTheIndexOfTheLastBlockOfTheRun", BrokenLookups.ExclusivePrefix::new),
    mutant("findsEveryBlockButTheHole", BrokenLookups.PrefixWithHoles::new),
    mutant("comparesAllBitsOfAnId", BrokenLookups.ComparesHalfAnId::new),
    mutant("comparesAllBitsOfAnId", BrokenLookups.TakesZerosForNothing::new),
    mutant("givesTheAnswerAwayForGood", BrokenLookups.AnswersFromItsCache::new),
    mutant("hidesABlockUntilItsLastShardIsThere", BrokenLookups.ShowsIncompleteBlocks::new),
    mutant("hidesABlockUntilItsLastShardIsThere", BrokenLookups.CommitsWithTheLastShard::new),
    mutant("countsAShardThatComesOftenOnce", BrokenLookups.CountsEveryDump::new),
    mutant("endsEveryLoadOfOneAbsentBlock", BrokenLookups.FindsWhatItFailedToLoad::new),
    mutant("takesTheShardsOfManyBlocksLayerByLayer", BrokenLookups.CallsPartsDurable::new),
    mutant("removesTheBlocksItIsToldAndNoOther", BrokenLookups.RemovesOneBlockOnly::new),
    mutant("removesForTheNextLifeToo", BrokenLookups.RemovesOneBlockOnly::new),
    mutant("saysWhetherItCanRemove", BrokenLookups.SaysItCannotRemove::new),
    mutant("saysWhichBlocksAreDurable", BrokenLookups.CallsNothingDurable::new),
    mutant("bringsBackEveryByteOfPackedBlocks", BrokenLookups.ForgetsWhatWasLoaded::new),
    mutant("bringsBackEveryByteOfScatteredBlocks", BrokenTransfers.MovesNothing::new),
    mutant("bringsBackEveryByteBetweenOneRegionAndMany", BrokenTransfers.SpoilsTheLastByte::new),
    mutant("loadsSingleShardsInAnyOrder", BrokenTransfers.WritesAByteTooMany::new),
    mutant("acceptsDumpsAndLeavesTheMemoryAsItWas", BrokenTransfers.ChangesWhatIsDumped::new),
    mutant("doesNotWriteTheMemoryOfALoadThatHasEnded", BrokenTransfers.WritesLate::new),
    mutant("doesNotReadTheMemoryOfADumpThatHasEnded", BrokenTransfers.ReadsLate::new),
    mutant("letsTheSourceOfAShardGoWhenItsListenerIsTold", BrokenTransfers.ReadsLate::new),
    mutant("putsBlocksTogetherFromMixedTasks", BrokenTransfers.LosesAShard::new),
    mutant("changesNothingWhenABlockThatIsThereIsDumpedAgain", BrokenTransfers.Overwrites::new),
    mutant(
        "endsShardsOfAbsentBlocksAsMissingAndTheOthersWell",
        BrokenTransfers.MissesAllWhenOneIsMissing::new),
    mutant(
        "endsShardsOfAbsentBlocksAsMissingAndTheOthersWell",
        BrokenTransfers.FailsWhatIsMissing::new),
    mutant("refusesTransfersOfAnotherLayout", BrokenTransfers.TakesAnyLayout::new),
    mutant("servesManyThreadsAtOnce", BrokenTransfers.MixesWriters::new),
    mutant("endsEveryLoadOfOneAbsentBlock", BrokenTasks.NeverEndsALoadThatMisses::new),
    mutant("endsATransferOfNothingAtOnce", BrokenTasks.NeverEndsATransferOfNothing::new),
    mutant("tellsTheListenerOfEachShardOnceBeforeTheTaskEnds", BrokenTasks.TellsNoListener::new),
    mutant(
        "tellsTheListenerOfEachShardOnceBeforeTheTaskEnds", BrokenTasks.TellsTheListenerTwice::new),
    mutant(
        "tellsTheListenerOfEachShardOnceBeforeTheTaskEnds",
        BrokenTasks.TellsOfAnotherTransfer::new),
    mutant("leavesAShardToItsListener", BrokenTasks.TellsTheListenerEarly::new),
    mutant("givesEachTaskANumberOfItsOwn", BrokenTasks.NumbersAllTasksAlike::new),
    mutant("endsWhatIsUnderWayWhenItIsClosed", BrokenTasks.LeavesTasksOpen::new),
    mutant("takesOrRefusesAtOnceWhatAShortQueueIsAsked", BrokenTasks.HangsWhenItsQueueIsShort::new),
    mutant("refusesUseAfterItIsClosed", BrokenLives.AnswersAfterClose::new),
    mutant("refusesToBeOpenedTwice", BrokenLives.OpensWithoutAWord::new),
    mutant("refusesToOpenBeforeItIsConfigured", BrokenLives.OpensWithoutAWord::new),
    mutant("reportsABadValueOfEachKeyWithoutThrowing", BrokenLives.ThrowsAtABadValue::new),
    mutant("reportsAllBadValuesAtOnce", BrokenLives.StopsAtTheFirstBadValue::new),
    mutant("reportsABadValueOfEachKeyWithoutThrowing", BrokenLives.DeclaresAKeyItDoesNotRead::new),
    mutant("closesTwiceWithoutHarm", BrokenLives.LeavesAThread::new),
    mutant("findsNothingInAnEmptyStore", BrokenLives.LeavesAThread::new),
    mutant(
        "configuringTouchesNoFileAndStartsNoThread", BrokenLives.StartsAThreadWhenConfigured::new),
    mutant("looksUpAndMovesNoDataAsScheduler", BrokenLives.MovesAsScheduler::new),
    mutant("findsAsSchedulerWhatAWorkerKept", BrokenLives.BlindAsScheduler::new),
    mutant("findsEverythingAfterARestart", BrokenLives.Forgets::new),
    mutant("losesNothingWhenClosedWithoutAFlush", BrokenLives.LosesWhatWasNotFlushed::new),
    mutant("reportsABlockThatLacksShardsAsPending", BrokenLives.HidesWhatIsPending::new),
    mutant("offersWholePagesOfMemoryOrNone", BrokenLives.OffersTooLittle::new),
    // The correct store, said to be bounded.
    mutant("keepsToItsBound", BrokenStore::new),
  };

  @AfterEach
  void endsTheThreadsThatWereLeft() {
    BrokenLives.LeavesAThread.LATCHES.forEach(CountDownLatch::countDown);
    BrokenLives.LeavesAThread.LATCHES.clear();
  }

  @ParameterizedTest(name = "{0} is caught by {1}")
  @FieldSource("MUTANTS")
  void catches(String name, String caughtBy, Supplier<BrokenStore> broken) {
    TestExecutionSummary summary = run(Set.of(caughtBy), broken, Duration.ofSeconds(1));
    assertThat(summary.getTestsFailedCount()).as("%s fails for %s", caughtBy, name).isPositive();
    assertThat(summary.getFailures())
        .allSatisfy(
            failure -> assertThat(failure.getException()).isInstanceOf(AssertionError.class));
  }

  @Test
  void namesTheTestOfAStoreThatDeadlocksInCloseAndGoesOn() {
    TestExecutionSummary summary =
        run(
            Set.of("answersForNoBlocksAtAll", "findsNothingInAnEmptyStore"),
            BrokenLives.DeadlocksInClose::new,
            Duration.ofMillis(500));
    assertThat(summary.getFailures())
        .extracting(failure -> String.valueOf(failure.getException().getMessage()))
        .hasSize(2)
        .allMatch(message -> message.contains("closesStoresAndLeavesNothing did not end within"))
        .anyMatch(message -> message.contains("answersForNoBlocksAtAll()"))
        .anyMatch(message -> message.contains("findsNothingInAnEmptyStore()"));
  }

  @Test
  void passesTheCorrectStoreUnderTheSameConditions() {
    TestExecutionSummary summary = run(Set.of(), BrokenStore::new, Duration.ofSeconds(30));
    assertThat(summary.getTestsFoundCount()).isGreaterThan(80);
    assertThat(summary.getFailures())
        .extracting(failure -> failure.getTestIdentifier().getDisplayName())
        .containsExactly("keepsToItsBound()");
  }

  /** Runs the tests of some names, or all. */
  private static TestExecutionSummary run(
      Set<String> methods, Supplier<BrokenStore> broken, Duration patience) {
    BrokenContract.broken = broken;
    BrokenContract.patience = patience;
    PostDiscoveryFilter byName =
        test ->
            FilterResult.includedIf(
                methods.isEmpty()
                    || test.getSource()
                        .filter(MethodSource.class::isInstance)
                        .map(source -> methods.contains(((MethodSource) source).getMethodName()))
                        .orElse(false));
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(BrokenContract.class))
            .filters(byName)
            .build();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(request, listener);
    TestExecutionSummary summary = listener.getSummary();
    assertThat(summary.getTestsFoundCount()).as("tests named %s", methods).isPositive();
    return summary;
  }

  /** Run by the tests above only. */
  static final class BrokenContract extends StoreContract {

    private static Supplier<BrokenStore> broken = BrokenStore::new;
    private static Duration patience = Duration.ofSeconds(1);

    private final Volume volume = new Volume();

    @Override
    protected Store newStore() {
      return broken.get().on(volume);
    }

    @Override
    protected boolean isService() {
      return false;
    }

    @Override
    protected Duration patience() {
      return patience;
    }

    @Override
    protected Optional<Map<String, Object>> settingsForAtMost(int blocks) {
      return Optional.of(Map.of());
    }
  }
}
