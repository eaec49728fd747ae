//! One agent's failure stops that agent alone, and an erased agent leaves nothing.

use std::collections::BTreeMap;

use pa_domain::Event;
use pa_domain::conversation::Event as Conversation;

use super::{LOG, Model, project};
use crate::commit::{Batch, Fact, Folded, fold};
use crate::testing::story::{self, PARTITION, Story, agent, everything, mark};
use crate::{Outcome, ReadStore as _, conversation, system};

fn fold_or_panic(fact: &Fact<'_>) -> Folded {
  if let Event::Conversation(Conversation::MessageAdmitted(admitted)) = fact.event {
    assert_ne!(admitted.text, "poison", "no fold for this one");
  }
  fold(fact)
}

fn two_agents() -> (Story, i64) {
  let mut story = Story::default();
  story.create(agent(1));
  story.create(agent(2));
  story.turn(agent(1), "fine", "yes");
  let from = story.ordinal(agent(1)) + 1;
  let poison = story.message(agent(1), "poison");
  story.start(poison, 1);
  story.turn(agent(2), "also fine", "yes");
  story.finish(poison, 1, "never shown", None);
  (story, from)
}

#[tokio::test]
async fn a_fold_that_panics_parks_its_agent_and_nobody_else() {
  let (story, from) = two_agents();
  for size in [1, 3, 500] {
    let model = Model::new().await;
    let mut loaded = model.store.load(PARTITION, LOG).await.unwrap();
    for start in (0..story.decisions.len()).step_by(size) {
      let end = (start + size).min(story.decisions.len());
      let mut batch = Batch::folding_with(fold_or_panic, &loaded.parked);
      for decision in &story.decisions[start..end] {
        decision.add_to(&mut batch);
      }
      let next = mark(&story.decisions[..end]);
      assert_eq!(model.store.commit(PARTITION, &loaded.mark, &next, &batch).await.unwrap(), Outcome::Committed);
      loaded = model.store.load(PARTITION, LOG).await.unwrap();
    }
    let parked = system::parked(&model.pool).await.unwrap();
    assert_eq!(parked.len(), 1);
    assert_eq!((parked[0].agent, parked[0].from), (agent(1), from));
    assert!(parked[0].error.contains("no fold for this one"), "{}", parked[0].error);
    assert_eq!(system::progress(&model.pool, agent(1)).await.unwrap(), from - 1);
    assert_eq!(system::progress(&model.pool, agent(2)).await.unwrap(), story.ordinal(agent(2)));
    let page = conversation::page(&model.pool, agent(1), story::main_of(agent(1)), 50, None).await.unwrap();
    assert_eq!(page.entries.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>(), ["fine", "yes"]);
    let page = conversation::page(&model.pool, agent(2), story::main_of(agent(2)), 50, None).await.unwrap();
    assert_eq!(page.entries.len(), 2);
  }
}

#[tokio::test]
async fn a_probe_says_which_rows_the_database_refuses_and_writes_nothing() {
  let (story, _) = two_agents();
  let model = Model::new().await;
  let constraint = format!("ALTER TABLE {}.entries ADD CONSTRAINT no_poison CHECK (body <> 'poison')", model.schema.name());
  sqlx::raw_sql(sqlx::AssertSqlSafe(constraint)).execute(&model.db.pool).await.unwrap();
  let loaded = model.store.load(PARTITION, LOG).await.unwrap();
  let before = model.tables().await;
  let mut good = Batch::new(&BTreeMap::new());
  for decision in &story.decisions[..3] {
    decision.add_to(&mut good);
  }
  assert_eq!(model.store.probe(&good).await.unwrap(), None);
  let mut bad = Batch::new(&BTreeMap::new());
  for decision in &story.decisions {
    decision.add_to(&mut bad);
  }
  let said = model.store.probe(&bad).await.unwrap().unwrap();
  assert!(said.contains("no_poison") && said.contains("23514") && !said.contains("'poison'"), "{said}");
  let refused = model.store.commit(PARTITION, &loaded.mark, &mark(&story.decisions), &bad).await.unwrap_err();
  assert!(matches!(refused, crate::Error::Refused(_)), "{refused:?}");
  assert_eq!(model.tables().await, before);
}

#[tokio::test]
async fn an_unreadable_record_parks_its_agent_in_the_same_commit() {
  let (story, _) = two_agents();
  let model = Model::new().await;
  let loaded = model.store.load(PARTITION, LOG).await.unwrap();
  let mut batch = Batch::new(&loaded.parked);
  story.decisions[0].add_to(&mut batch);
  batch.park(PARTITION, agent(1), 4, "a record can't be opened");
  for decision in &story.decisions[1..] {
    decision.add_to(&mut batch);
  }
  assert_eq!(model.store.commit(PARTITION, &loaded.mark, &mark(&story.decisions), &batch).await.unwrap(), Outcome::Committed);
  assert_eq!(system::progress(&model.pool, agent(1)).await.unwrap(), 3);
  assert_eq!(system::parked(&model.pool).await.unwrap()[0].from, 4);
  assert_eq!(model.store.load(PARTITION, LOG).await.unwrap().parked, BTreeMap::from([(agent(1), 4)]));
}

#[tokio::test]
async fn an_erased_agent_leaves_no_row_and_the_others_stay() {
  let story = everything();
  let model = Model::of(&story.decisions).await;
  let erased = agent(3).0.to_string();
  for (table, rows) in model.tables().await {
    if table != "accounts" {
      assert!(rows.iter().all(|row| !row.contains(&erased)), "{table} still has the agent");
    }
  }
  assert_eq!(system::progress(&model.pool, agent(3)).await.unwrap(), 0);
  assert_eq!(system::progress(&model.pool, agent(1)).await.unwrap(), story.ordinal(agent(1)));
}

#[tokio::test]
async fn erasing_a_parked_agent_takes_its_parking_away() {
  let (mut story, _) = two_agents();
  story.erase(agent(1));
  let model = Model::new().await;
  let (last, before) = story.decisions.split_last().unwrap();
  let loaded = model.store.load(PARTITION, LOG).await.unwrap();
  let mut batch = Batch::folding_with(fold_or_panic, &loaded.parked);
  for decision in before {
    decision.add_to(&mut batch);
  }
  model.store.commit(PARTITION, &loaded.mark, &mark(before), &batch).await.unwrap();
  assert_eq!(system::parked(&model.pool).await.unwrap().len(), 1);
  let loaded = model.store.load(PARTITION, LOG).await.unwrap();
  let mut batch = Batch::folding_with(fold_or_panic, &loaded.parked);
  last.add_to(&mut batch);
  model.store.commit(PARTITION, &loaded.mark, &mark(&story.decisions), &batch).await.unwrap();
  assert_eq!(system::parked(&model.pool).await.unwrap(), []);
  let tables = model.tables().await;
  assert!(tables["entries"].iter().all(|row| !row.contains(&agent(1).0.to_string())));
  // The rest of the story goes on from there.
  project(&model.store, &story.decisions, 500).await;
}

/// What was settled between an erasure and the end of the keys, read by a projector that began in between: it neither leaves a row nor parks whom nobody knows any more.
#[tokio::test]
async fn what_is_settled_after_an_erasure_leaves_no_row_and_a_hole_still_parks() {
  let mut story = Story::default();
  story.create(agent(1));
  story.erase(agent(1));
  story.create(agent(2));
  let model = Model::of(&story.decisions).await;
  let told = story.decisions.len();
  story.settled(agent(1));
  story.settled(agent(1));
  story.settled(agent(2));
  let loaded = model.store.load(PARTITION, LOG).await.unwrap();
  let mut batch = Batch::new(&loaded.parked);
  story.decisions[told..].iter().for_each(|decision| decision.add_to(&mut batch));
  assert_eq!(model.store.commit(PARTITION, &loaded.mark, &mark(&story.decisions), &batch).await.unwrap(), Outcome::Stale, "the agent has no row");
  let progress = model.store.progress(&[agent(1), agent(2)]).await.unwrap();
  let mut batch = Batch::new(&loaded.parked).after(progress);
  story.decisions[told..].iter().for_each(|decision| decision.add_to(&mut batch));
  assert_eq!(model.store.commit(PARTITION, &loaded.mark, &mark(&story.decisions), &batch).await.unwrap(), Outcome::Committed);
  assert_eq!(system::parked(&model.pool).await.unwrap(), []);
  assert_eq!(system::progress(&model.pool, agent(1)).await.unwrap(), 0);
  assert_eq!(system::progress(&model.pool, agent(2)).await.unwrap(), story.ordinal(agent(2)));
  // A fact of an agent without a row is a hole in its chain, and is said to be one.
  story.message(agent(1), "from nowhere");
  let mut batch = Batch::new(&BTreeMap::new()).after(BTreeMap::new());
  story.decisions.last().unwrap().add_to(&mut batch);
  assert!(batch.parked().contains_key(&agent(1)));
}
