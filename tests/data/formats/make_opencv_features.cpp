// Writes opencv_f.yml and opencv_u.yml with cv::FileStorage (OpenCV 4.6 wrote the files that are kept).
//
// g++ make_opencv_features.cpp $(pkg-config --cflags --libs opencv4) -o make && ./make
//
// The values follow from the row, so tests/unit/test_formats_foreign.c computes them again.
#include <opencv2/core.hpp>
#include <opencv2/features2d.hpp>

static void write(const char *path, int type) {
  std::vector<cv::KeyPoint> keypoints;
  cv::Mat descriptors(5, 128, type);
  for (int i = 0; i < 5; i++) {
    int packed = ((i - 1) & 255) | (1 + i % 3) << 8 | (100 + i) << 16;
    keypoints.emplace_back(10.25f + 3 * i, 7.5f + 2 * i, 3.0f + 0.5f * i, 45.0f + 60 * i, i / 64.0f, packed, -1);
    for (int k = 0; k < 128; k++) {
      int value = (i * 7 + k) % 256;
      if (type == CV_8U) descriptors.at<unsigned char>(i, k) = (unsigned char)value;
      if (type == CV_32F) descriptors.at<float>(i, k) = (float)value;
    }
  }
  cv::FileStorage storage(path, cv::FileStorage::WRITE);
  storage << "comment"
          << "some other entry: [ not, keypoints ]";
  cv::write(storage, "keypoints", keypoints);
  storage << "descriptors" << descriptors;
}

int main() {
  write("opencv_f.yml", CV_32F);
  write("opencv_u.yml", CV_8U);
  return 0;
}
