//! One value from one task to another.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
    sender_gone: bool,
    receiver_gone: bool,
}

/// The sending end.
#[derive(Debug)]
pub struct OneshotSender<T>(Rc<RefCell<State<T>>>);

/// The receiving end: a future of the value.
#[derive(Debug)]
pub struct OneshotReceiver<T>(Rc<RefCell<State<T>>>);

/// The sender went away without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sender went away without a value")]
pub struct Canceled;

/// Makes a pair.
pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let state = Rc::new(RefCell::new(State {
        value: None,
        waker: None,
        sender_gone: false,
        receiver_gone: false,
    }));
    (OneshotSender(state.clone()), OneshotReceiver(state))
}

impl<T> OneshotSender<T> {
    /// Hands the value over, or back if nobody will take it.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut state = self.0.borrow_mut();
        if state.receiver_gone {
            return Err(value);
        }
        state.value = Some(value);
        Ok(())
    }

    /// True once the receiver is dropped: the work is not wanted any more.
    pub fn is_closed(&self) -> bool {
        self.0.borrow().receiver_gone
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.borrow_mut();
            state.sender_gone = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.receiver_gone = true;
        let left = (state.value.take(), state.waker.take());
        drop(state);
        drop(left);
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, Canceled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.borrow_mut();
        if let Some(value) = state.value.take() {
            return Poll::Ready(Ok(value));
        }
        if state.sender_gone {
            return Poll::Ready(Err(Canceled));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
