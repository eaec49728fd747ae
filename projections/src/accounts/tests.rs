//! Accounts: those of the installation, in the order in which they were added.

use pa_domain::account::Role;

use super::{all, one};
use crate::testing::story::{Story, agent};
use crate::tests::Model;

#[tokio::test]
async fn accounts_are_listed_in_the_order_in_which_they_came() {
  let mut story = Story::default();
  story.account(agent(2), "Kim");
  story.account(agent(1), "Lee");
  story.create(agent(1));
  let model = Model::of(&story.decisions).await;
  let names: Vec<_> = all(&model.pool).await.unwrap().into_iter().map(|account| (account.id, account.name)).collect();
  assert_eq!(names, [(agent(2), "Kim".to_owned()), (agent(1), "Lee".to_owned())]);
  assert_eq!(one(&model.pool, agent(1)).await.unwrap().unwrap().role, Role::Member);
  assert_eq!(one(&model.pool, agent(3)).await.unwrap(), None);
}
