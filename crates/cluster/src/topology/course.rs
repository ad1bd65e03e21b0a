//! The steps of an operation, in their order. Pure: who drives them says how each went.

/// How far an operation is.
#[derive(Clone, Debug)]
pub(super) struct Course<S: 'static> {
    steps: &'static [S],
    /// Steps that were taken.
    taken: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not begun.
    Idle,
    /// It is under way.
    Running,
    /// A step could not be taken: it can begin again.
    Failed,
    /// All were taken.
    Done,
}

impl<S: Copy + PartialEq + std::fmt::Debug> Course<S> {
    /// Of an operation that has not begun.
    pub fn idle() -> Self {
        Self { steps: &[], taken: 0, state: State::Idle }
    }

    /// Begins; again, after it failed.
    pub fn begin(&mut self, steps: &'static [S]) {
        assert!(!matches!(self.state, State::Running), "an operation begins once");
        *self = Self { steps, taken: 0, state: State::Running };
    }

    /// The step that is next; none of what is not under way.
    pub fn next(&self) -> Option<S> {
        let next = self.steps.get(self.taken).copied();
        next.filter(|_| self.state == State::Running)
    }

    /// A step was taken.
    pub fn done(&mut self, step: S) {
        assert_eq!(self.next(), Some(step), "steps are taken in their order");
        self.taken += 1;
        if self.taken == self.steps.len() {
            self.state = State::Done;
        }
    }

    /// The next step could not be taken.
    pub fn failed(&mut self) {
        assert!(self.next().is_some(), "only what is under way fails");
        self.state = State::Failed;
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEPS: &[char] = &['a', 'b', 'c'];

    proptest! {
        #[test]
        fn steps_come_in_their_order(acts in prop::collection::vec(0..3_u8, 0..40)) {
            let mut course = Course::idle();
            let mut taken = String::new();
            for act in acts {
                match (act, course.next()) {
                    (0, None) => {
                        course.begin(STEPS);
                        taken.clear();
                    }
                    (1, Some(step)) => {
                        course.done(step);
                        taken.push(step);
                    }
                    (2, Some(_)) => course.failed(),
                    _ => {}
                }
                prop_assert!("abc".starts_with(&taken));
                prop_assert_eq!(course.state() == State::Done, taken == "abc");
                prop_assert_eq!(course.next().is_some(), course.state() == State::Running);
            }
        }
    }
}
