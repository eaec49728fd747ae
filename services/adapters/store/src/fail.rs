//! Fail points: named places at which a test lets the process die, as if the power had gone.
//!
//! Without the feature `fail_points`, which no release build has, a point compiles to nothing. With it `PA_FAIL=point:n[,point:n]` aborts the process when it
//! passes a point for the n-th time, and `PA_TEST_GENERATION=n` makes it a later version of the product, which folds into tables and states of its own.

/// Dies here if a test asked for it.
#[macro_export]
macro_rules! fail_point {
  ($name:literal) => {
    $crate::fail::pass($name)
  };
}

/// Does nothing.
#[cfg(not(feature = "fail_points"))]
#[inline]
pub const fn pass(_name: &'static str) {}

/// How many fold versions later than its code this program pretends to be: none.
#[cfg(not(feature = "fail_points"))]
#[inline]
pub const fn generation() -> u32 {
  0
}

#[cfg(feature = "fail_points")]
pub use armed::{generation, pass};

#[cfg(feature = "fail_points")]
mod armed {
  use std::sync::LazyLock;
  use std::sync::atomic::{AtomicI64, Ordering};

  struct Point {
    name: String,
    left: AtomicI64,
  }

  static POINTS: LazyLock<Vec<Point>> = LazyLock::new(|| points(&named()));

  static GENERATION: LazyLock<u32> = LazyLock::new(|| chosen().parse().unwrap_or(0));

  #[expect(clippy::disallowed_methods, reason = "a test chooses the generation of a process before it starts")]
  fn chosen() -> String {
    std::env::var("PA_TEST_GENERATION").unwrap_or_default()
  }

  /// How many fold versions later than its code this program pretends to be.
  pub fn generation() -> u32 {
    *GENERATION
  }

  #[expect(clippy::disallowed_methods, reason = "a test names the points of a process before it starts")]
  fn named() -> String {
    std::env::var("PA_FAIL").unwrap_or_default()
  }

  fn points(named: &str) -> Vec<Point> {
    let parse = |part: &str| {
      let (name, passes) = part.split_once(':')?;
      Some(Point { name: name.to_owned(), left: AtomicI64::new(passes.parse().ok()?) })
    };
    named.split(',').filter_map(|part| parse(part.trim())).collect()
  }

  /// Aborts the process at the chosen pass of this point.
  pub fn pass(name: &'static str) {
    for point in POINTS.iter().filter(|point| point.name == name) {
      if point.left.fetch_sub(1, Ordering::SeqCst) == 1 {
        tracing::error!(point = name, "a test lets this process die here");
        std::process::abort();
      }
    }
  }

  #[cfg(test)]
  mod tests {
    use super::points;

    #[test]
    fn points_are_named_with_the_pass_at_which_they_fire() {
      let found: Vec<_> =
        points("a.b:2, c:1,nonsense,d:x").iter().map(|point| (point.name.clone(), point.left.load(std::sync::atomic::Ordering::SeqCst))).collect();
      assert_eq!(found, [("a.b".to_owned(), 2), ("c".to_owned(), 1)]);
    }
  }
}
