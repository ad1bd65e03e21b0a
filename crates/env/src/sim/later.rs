//! A result that an event will bring.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

pub(super) struct Later<T>(Rc<RefCell<Slot<T>>>);

pub(super) fn later<T>() -> (impl FnOnce(T), Later<T>) {
    let slot = Rc::new(RefCell::new(Slot { value: None, waker: None }));
    let theirs = slot.clone();
    let fill = move |value| {
        let waker = {
            let mut slot = theirs.borrow_mut();
            slot.value = Some(value);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    };
    (fill, Later(slot))
}

impl<T> Future for Later<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = self.0.borrow_mut();
        if let Some(value) = slot.value.take() {
            return Poll::Ready(value);
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
